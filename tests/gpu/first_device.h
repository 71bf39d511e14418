// A test on the first GPU of this host; skipped where there is none.
#pragma once

#include <gtest/gtest.h>

#include <iostream>
#include <memory>

#include "device/device.h"

namespace trestle {

class OnFirstDevice : public testing::Test {
 protected:
  void SetUp() override {
    auto devices = open_devices();
    if (!devices.ok()) {
      std::cout << "skipped: " << devices.error().message << std::endl;
      GTEST_SKIP() << devices.error().message;
    }
    devices_ = std::move(devices).value();
    device_ = devices_->open(0).value();
    stream_ = device_->make_stream(false).value();
  }
  void TearDown() override {
    if (device_ == nullptr) return;
    EXPECT_TRUE(device_->destroy_stream(stream_).ok());
  }
  void finish() {
    const Status finished = device_->synchronize(stream_);
    ASSERT_TRUE(finished.ok()) << finished.error().message;
  }

  std::unique_ptr<Devices> devices_;
  std::unique_ptr<Device> device_;
  StreamHandle* stream_ = nullptr;
};

}  // namespace trestle
