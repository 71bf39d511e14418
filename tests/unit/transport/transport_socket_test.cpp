// Addresses, and sockets on loopback.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "transport/socket/name_lookup.h"
#include "transport/socket/socket.h"

namespace trestle {
namespace {

TEST(Address, IsReadAndWritten) {
  for (const char* text : {"127.0.0.1:5000", "10.1.2.3:1", "[::1]:65535", "[2001:db8::7]:80"}) {
    const auto address = parse_address(text);
    ASSERT_TRUE(address.ok()) << address.error().message;
    EXPECT_EQ(format_address(address.value()), text);
    EXPECT_EQ(format_host(address.value()) + ":" + std::to_string(address.value().port()), text);
  }
  EXPECT_TRUE(parse_address("127.9.9.9:1").value().is_loopback());
  EXPECT_TRUE(parse_address("[::1]:1").value().is_loopback());
  EXPECT_TRUE(parse_address("[::ffff:127.0.0.1]:1").value().is_loopback());
  EXPECT_FALSE(parse_address("10.0.0.1:1").value().is_loopback());
  EXPECT_EQ(parse_address("[::1]:77").value().port(), 77);
  EXPECT_EQ(parse_address("10.0.0.1:1").value(), parse_address("10.0.0.1:1").value());
  EXPECT_FALSE(parse_address("10.0.0.1:1").value() == parse_address("10.0.0.1:2").value());
}

TEST(Address, WhatIsNoneIsRefusedWithTheText) {
  for (const char* text :
       {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:x", ":80", "::1:80", "[::1]",
        "[::1]:", "[::1:80", "[]:80", "1.2.3:y:80", "127.0.0.1:80 ", "300.1.1.1:80", "host:80"}) {
    const auto address = parse_address(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.error().code, Code::kInvalidArgument);
    EXPECT_NE(address.error().message.find("'" + std::string(text) + "'"), std::string::npos)
        << address.error().message;
  }
  EXPECT_EQ(parse_host_port("node-3:29500").value().host, "node-3");
}

TEST(HostAddress, IsOneWhateverItsForm) {
  const struct {
    const char* one;
    const char* other;
    bool same;
  } kCases[] = {
      {"10.0.0.1", "10.0.0.1", true},        {"10.0.0.1", "10.0.0.2", false},      {"::1", "[::1]", true},
      {"[fd00::1]", "fd00:0:0::0001", true}, {"fd00::1", "fd00::2", false},        {"127.0.0.1", "::1", false},
      {"10.0.0.1", "::ffff:10.0.0.1", true}, {"[::ffff:a00:1]", "10.0.0.1", true}, {"10.0.0.1", "::10.0.0.1", false},
      {"fe80::1%lo", "[fe80::1%lo]", true},  {"fe80::1%lo", "fe80::1", false},     {"fe80::1%1", "fe80::1%2", false}};
  for (const auto& c : kCases) {
    const auto one = parse_host(c.one);
    const auto other = parse_host(c.other);
    ASSERT_TRUE(one.ok() && other.ok()) << c.one << " " << c.other;
    EXPECT_EQ(one.value() == other.value(), c.same) << c.one << " " << c.other;
    EXPECT_EQ(other.value() == one.value(), c.same) << c.one << " " << c.other;
    EXPECT_TRUE(one.value().is_known());
    EXPECT_FALSE(one.value() == HostAddress());
  }
}

TEST(HostAddress, HasOneTextThatIsReadBack) {
  const struct {
    const char* address;
    const char* text;
    AddressFamily family;
  } kCases[] = {{"10.1.2.3:80", "10.1.2.3", AddressFamily::kIpv4},
                {"[::1]:80", "::1", AddressFamily::kIpv6},
                {"[2001:DB8:0::7]:65535", "2001:db8::7", AddressFamily::kIpv6},
                {"[::ffff:10.1.2.3]:1", "10.1.2.3", AddressFamily::kIpv4},
                {"[fe80::5%lo]:1", "fe80::5%lo", AddressFamily::kIpv6}};
  for (const auto& c : kCases) {
    const HostAddress host = parse_address(c.address).value();
    EXPECT_EQ(host.text(), c.text);
    EXPECT_EQ(host.family(), c.family) << c.address;
    EXPECT_EQ(host.address().port(), 0) << c.address;
    EXPECT_EQ(parse_host(c.text).value(), host);
    EXPECT_EQ(parse_host(format_host(host.address())).value(), host);
  }
}

TEST(HostAddress, TheInterfaceCountsInLinkLocalAddressesAlone) {
  for (const bool link_local : {false, true}) {
    SocketAddress plain = parse_address(link_local ? "[fe80::1]:80" : "[2001:db8::1]:80").value();
    SocketAddress on_interface = plain;
    reinterpret_cast<sockaddr_in6&>(on_interface.storage).sin6_scope_id = 3;
    EXPECT_EQ(HostAddress(plain) == on_interface, !link_local);
  }
}

TEST(HostAddress, OfNoAddressIsNone) {
  SocketAddress unix_socket;
  unix_socket.storage.ss_family = AF_UNIX;
  unix_socket.length = sizeof(sa_family_t);
  for (const HostAddress& none : {HostAddress(), HostAddress(SocketAddress()), HostAddress(unix_socket)}) {
    EXPECT_FALSE(none.is_known());
    EXPECT_EQ(none.text(), "");
    EXPECT_EQ(none.address().length, 0u);
  }
}

TEST(HostAddress, WhatIsNoneIsRefusedWithTheText) {
  for (const char* text : {"", "[]", "[10.0.0.1]", "10.0.0.1:80", "[::1]:80", "[::1", "::1]", "no-such-name",
                           ":::", "10.0.0.256", "fe80::1%no-such-interface"}) {
    const auto host = parse_host(text);
    ASSERT_FALSE(host.ok()) << text;
    EXPECT_EQ(host.error().code, Code::kInvalidArgument);
    EXPECT_NE(host.error().message.find("'" + std::string(text) + "'"), std::string::npos) << host.error().message;
  }
}

TEST(HostPort, IsWrittenSoThatItIsReadBack) {
  const struct {
    HostPort place;
    const char* text;
  } kCases[] = {{{"::1", 80}, "[::1]:80"},
                {{"[::1]", 80}, "[::1]:80"},
                {{"fe80::1%eth0", 1}, "[fe80::1%eth0]:1"},
                {{"10.0.0.1", 65535}, "10.0.0.1:65535"},
                {{"node-3", 29500}, "node-3:29500"}};
  for (const auto& c : kCases) {
    EXPECT_EQ(format_host_port(c.place), c.text);
    EXPECT_EQ(format_host_port(parse_host_port(c.text).value()), c.text);
  }
}

TEST(HostName, ThatCanBeNoneIsSaidAtOnce) {
  for (const char* host :
       {"node3", "trainer-0.trainer", "a.b.c.", "my_app_1", "123456789012", "10.0.0.x", "x.1.2.3", "n\xc3\xb6"})
    EXPECT_EQ(why_no_host(host), "") << host;
  const std::string label(63, 'x');
  EXPECT_EQ(why_no_host(label + "." + label + "." + label), "");
  const struct {
    std::string host;
    const char* why;
  } kCases[] = {{"node 3", "no name has the character ' '"},
                {"node/3", "no name has the character '/'"},
                {"no\tde", "it has a control character"},
                {"node..a", "there is nothing between two dots or at an end"},
                {".node", "there is nothing between two dots or at an end"},
                {".", "there is nothing between two dots or at an end"},
                {label + "x", "no name has more than 63 bytes between two dots"},
                {label + "." + label + "." + label + "." + label, "no name has more than 253 bytes"},
                {"10.0.0.256", "it is no IPv4 address"},
                {"fd00::zz", "it is no IPv6 address"}};
  for (const auto& c : kCases) {
    EXPECT_EQ(why_no_host(c.host), c.why);
    const WaitLimit past{monotonic_clock().now_ns(), nullptr};  // it would end what is looked up
    const auto found = resolve_before(format_host_port({c.host, 80}), AddressFamily::kAny, past);
    ASSERT_FALSE(found.ok()) << c.host;
    EXPECT_EQ(found.error().code, Code::kInvalidArgument);
    EXPECT_TRUE(found.error().message.ends_with(c.why)) << found.error().message;
  }
}

TEST(HostName, OfANumericAddressIsItself) {
  for (const char* text : {"127.0.0.1:80", "[::1]:80", "10.9.8.7:1"}) {
    const SocketAddress address = parse_address(text).value();
    const bool is_v4 = address.family() == AddressFamily::kIpv4;
    EXPECT_EQ(resolve_before(text, AddressFamily::kAny, {}).value(), Addresses{address}) << text;
    EXPECT_EQ(resolve_before(text, address.family(), {}).value(), Addresses{address}) << text;
    const auto other = resolve_before(text, is_v4 ? AddressFamily::kIpv6 : AddressFamily::kIpv4, {});
    ASSERT_FALSE(other.ok()) << text;
    EXPECT_EQ(other.error().code, Code::kInvalidArgument);
  }
  EXPECT_FALSE(resolve_before("node3", AddressFamily::kAny, {}).ok()) << "no port";
}

// A call that has no end, as of a name server that does not answer.
TEST(SideCall, IsGivenUpAtTheLimitAndGoesOnAlone) {
  std::promise<int> end;
  const auto ends = std::make_shared<std::future<int>>(end.get_future());
  std::promise<void> ended;
  {
    auto call = SideCall<int>::start("test", [ends, &ended]() -> Result<int> {
      const int result = ends->get();
      ended.set_value();
      return result;
    });
    ASSERT_TRUE(call.ok()) << call.error().message;
    const std::atomic<bool> aborted{true};
    EXPECT_EQ(call.value().wait_before({kNever, &aborted}).error().code, Code::kAborted);
    EXPECT_EQ(call.value().wait_before({monotonic_clock().now_ns(), nullptr}).error().code, Code::kTimeout);
    EXPECT_FALSE(call.value().ended());
  }
  end.set_value(7);
  ended.get_future().wait();
  auto call = SideCall<int>::start("test", []() -> Result<int> { return 5; });
  ASSERT_TRUE(call.value().wait_before({}).ok());
  EXPECT_EQ(call.value().take().value(), 5);
}

SocketAddress loopback_address() {
  SocketAddress address = parse_address("127.0.0.1:1").value();
  address.set_port(0);
  return address;
}

Result<Listener> listen_on_loopback(const PortRange& ports = {}) {
  const SocketAddress address = loopback_address();
  return listen_tcp({&address, 1}, {ports});
}

// An address may have been taken from its interface a moment ago.
TEST(Tcp, ListensAtTheFirstAddressThatCanBeBound) {
  const SocketAddress foreign = parse_address("192.0.2.1:1").value();
  const std::vector<SocketAddress> addresses = {foreign, loopback_address()};
  const auto listener = listen_tcp(addresses, {});
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  EXPECT_EQ(HostAddress(listener.value().address), loopback_address());
  const auto none = listen_tcp({&foreign, 1}, {});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, Code::kSystemError);
  EXPECT_NE(none.error().message.find("192.0.2.1"), std::string::npos) << none.error().message;
}

TEST(Tcp, AFullPortRangeIsSaidAndNoReasonToListenElsewhere) {
  auto first = listen_on_loopback();
  ASSERT_TRUE(first.ok()) << first.error().message;
  const uint16_t port = first.value().address.port();
  const std::vector<SocketAddress> addresses = {loopback_address(), parse_address("127.0.0.2:1").value()};
  const auto second = listen_tcp(addresses, {{port, port}, "so many"});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().message, "every port from " + std::to_string(port) + " to " + std::to_string(port) +
                                        " is in use at 127.0.0.1: so many");
  EXPECT_FALSE(listen_on_loopback({20, 10}).ok());
}

TEST(Tcp, BytesAndTheEndOfTheStream) {
  auto listener = listen_on_loopback();
  ASSERT_TRUE(listener.ok());
  EXPECT_FALSE(accept_connection(listener.value().fd.get()).value());
  const SocketAddress to = listener.value().address;
  auto out = connect_before({&to, 1}, {});
  ASSERT_TRUE(out.ok()) << out.error().message;
  auto in = accept_before(listener.value().fd.get(), {});
  ASSERT_TRUE(in.ok());
  EXPECT_TRUE(set_tcp_options(out.value().get(), {}));
  TcpOptions unknown;
  unknown.congestion = "no-such-control";
  EXPECT_FALSE(set_tcp_options(out.value().get(), unknown));
  std::array<std::byte, 4> buffer;
  EXPECT_EQ(receive_bytes(in.value().get(), buffer).value(), 0u) << "would block";
  const std::array<std::byte, 4> data = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  ASSERT_TRUE(send_all_before(out.value().get(), data, {}).ok());
  ASSERT_TRUE(receive_all_before(in.value().get(), buffer, {}).ok());
  EXPECT_EQ(buffer, data);
  end_sending(out.value().get());
  ASSERT_TRUE(wait_before(in.value().get(), POLLIN, {}).ok());
  EXPECT_EQ(receive_bytes(in.value().get(), buffer).value(), kEndOfStream);
  EXPECT_EQ(receive_all_before(in.value().get(), buffer, {}).error().code, Code::kRemoteError);
  EXPECT_EQ(peer_address(out.value().get()), to);
}

TEST(Tcp, TheKernelSaysHowMuchOfAFullSocketIsUnsent) {
  auto listener = listen_on_loopback();
  ASSERT_TRUE(listener.ok());
  const SocketAddress to = listener.value().address;
  auto out = connect_before({&to, 1}, {});
  ASSERT_TRUE(out.ok()) << out.error().message;
  auto in = accept_before(listener.value().fd.get(), {});
  ASSERT_TRUE(in.ok());
  const std::vector<std::byte> data(1 << 20);
  for (size_t sent = 1; sent > 0;) sent = send_bytes(out.value().get(), data).value();
  const SendingCounts full = sending_counts(out.value().get());
  if (full.acked_bytes == 0) GTEST_SKIP() << "the kernel does not count, or does not tell it";
  EXPECT_GT(full.unsent_bytes, 0u) << "nobody reads";
  EXPECT_EQ(sending_counts(in.value().get()).unsent_bytes, 0u) << "nothing was written there";
}

TEST(Tcp, WaitingEndsAtTheMomentOrWhenAborted) {
  auto listener = listen_on_loopback();
  ASSERT_TRUE(listener.ok());
  WaitLimit past{monotonic_clock().now_ns() - 1, nullptr};
  EXPECT_EQ(accept_before(listener.value().fd.get(), past).error().code, Code::kTimeout);
  std::atomic<bool> aborted{true};
  EXPECT_EQ(accept_before(listener.value().fd.get(), {kNever, &aborted}).error().code, Code::kAborted);
  const SocketAddress nobody = listener.value().address;
  listener.value().fd.reset();
  EXPECT_EQ(connect_before({&nobody, 1}, {monotonic_clock().now_ns() + 30'000'000, nullptr}).error().code,
            Code::kTimeout);
}

TEST(Unix, AbstractNamesCarryDescriptorsAndSayWhoIsThere) {
  const std::string name =
      "trestle-test-" + std::to_string(::getpid()) + "-" + std::to_string(monotonic_clock().now_ns());
  EXPECT_EQ(connect_unix(name).error().code, Code::kRemoteError);
  auto listener = listen_unix(name);
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  EXPECT_FALSE(listen_unix(name).ok());
  EXPECT_FALSE(listen_unix("").ok());
  EXPECT_FALSE(listen_unix(std::string(108, 'x')).ok());
  auto out = connect_unix(name);
  ASSERT_TRUE(out.ok());
  auto in = accept_before(listener.value().get(), {});
  ASSERT_TRUE(in.ok());
  EXPECT_EQ(peer_process(in.value().get()).value().pid, ::getpid());

  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const std::byte letter{42};
  const int passed = writing.get();
  ASSERT_EQ(send_with_descriptors(out.value().get(), {&letter, 1}, {&passed, 1}).value(), 1u);
  writing.reset();
  std::byte got{};
  std::vector<UniqueFd> descriptors;
  ASSERT_TRUE(wait_before(in.value().get(), POLLIN, {}).ok());
  ASSERT_EQ(receive_with_descriptors(in.value().get(), {&got, 1}, descriptors).value(), 1u);
  EXPECT_EQ(got, letter);
  ASSERT_EQ(descriptors.size(), 1u);
  ASSERT_EQ(::write(descriptors[0].get(), "x", 1), 1);
  char read_back = 0;
  ASSERT_EQ(::read(reading.get(), &read_back, 1), 1);
  EXPECT_EQ(read_back, 'x');
  out.value().reset();
  ASSERT_TRUE(wait_before(in.value().get(), POLLIN, {}).ok());
  EXPECT_EQ(receive_with_descriptors(in.value().get(), {&got, 1}, descriptors).value(), kEndOfStream);
}

}  // namespace
}  // namespace trestle
