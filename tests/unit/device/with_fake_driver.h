// A test whose devices are those of the fake driver. After each test nothing may be left, and nothing was used wrongly.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>

#include "base/check.h"
#include "device/device.h"
#include "unit/device/fake_driver.h"

namespace trestle {

class WithFakeDriver : public testing::Test {
 protected:
  static FakeDriver& fake() {
    static FakeDriver* const driver = [] {
      void* const library = dlopen(TRESTLE_FAKE_DRIVER, RTLD_NOW | RTLD_LOCAL);
      CHECK(library != nullptr, "the fake driver was not built");
      return reinterpret_cast<FakeDriver* (*)()>(dlsym(library, "fake_driver"))();
    }();
    return *driver;
  }

  void SetUp() override { fake().reset(); }
  void TearDown() override {
    peer_.reset();
    device_.reset();
    devices_.reset();
    EXPECT_EQ(fake().misuse(), "");
    if (!leaks_) {
      EXPECT_EQ(fake().objects(), FakeObjects());
    }
  }

  void open_devices_of_fake() {
    auto devices = open_devices(TRESTLE_FAKE_DRIVER);
    ASSERT_TRUE(devices.ok()) << devices.error().message;
    devices_ = std::move(devices).value();
    auto device = devices_->open(0);
    ASSERT_TRUE(device.ok()) << device.error().message;
    device_ = std::move(device).value();
    auto peer = devices_->open(1);
    ASSERT_TRUE(peer.ok()) << peer.error().message;
    peer_ = std::move(peer).value();
  }

  std::unique_ptr<Devices> devices_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Device> peer_;
  bool leaks_ = false;  // the test made a call fail that frees something
};

}  // namespace trestle
