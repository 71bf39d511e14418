// RailTransport: messages over rails. It knows the requests and the links to the peers; a rail knows connections.
//
// See transport.h for the contract, and rail.h for the division of work.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/message/link.h"
#include "transport/rail.h"
#include "transport/transport.h"

namespace trestle {

class RailTransport final : public Transport, private RailEvents {
 public:
  // kind: as in base/transport_kinds.h, for sentences.
  RailTransport(const EndpointConfig& config, std::string kind, std::unique_ptr<Rail> rail);
  ~RailTransport() override { close(0); }

  std::string address() const override { return rail_->address(); }
  Status set_peers(const std::vector<std::string>& addresses, const std::vector<std::string>& peer_names) override;
  Result<bool> post_send(SendRequest& request) override;
  Result<bool> post_recv(RecvRequest& request) override;
  void release(RecvRequest& request) override;
  Result<bool> progress() override;
  void look_everywhere() override { rail_->look_everywhere(); }
  int event_fd() const override { return rail_->event_fd(); }
  bool prepare_sleep() override { return !error_ && rail_->prepare_sleep(); }
  void finish_sleep() override { rail_->finish_sleep(); }
  void close(int linger_ms) override;

 private:
  RailPeer peer(int32_t rank) const override;
  const std::string& name(int32_t rank) const override { return names_[static_cast<size_t>(rank)]; }
  void connected(int32_t rank) override { link_of(rank); }
  Status ended(int32_t rank) override;
  bool next_control(int32_t rank, Frame& header) override { return link_of(rank).next_control(header); }
  SendRequest* next_message(int32_t rank, Frame& header) override { return link_of(rank).next_message(header); }
  void written(int32_t rank, SendRequest& request) override { link_of(rank).written(request); }
  Result<std::span<const Piece>> begin(int32_t rank, const Frame& header) override;
  void end(int32_t rank) override { link_of(rank).end(); }

  struct Peer {
    std::unique_ptr<Link> link;  // exists from the first post or connection on
    bool left = false;           // said goodbye and closed
    bool has_left() const { return left || (link != nullptr && link->peer_left()); }
  };
  Peer& at(int32_t rank) { return peers_[static_cast<size_t>(rank)]; }
  Link& link_of(int32_t rank);
  Result<Link*> reach(int32_t rank);
  Status check_left(int32_t rank);
  Error fail(Error error);
  Error link_error(int32_t rank, const Error& error);

  const int32_t rank_;
  const std::string kind_;
  const LinkLimits limits_;
  std::vector<std::string> names_;
  BufferPool pool_;
  std::vector<Peer> peers_;
  const std::unique_ptr<Rail> rail_;
  std::optional<Error> error_;
  bool closed_ = false;
  bool says_goodbye_ = false;  // once it is closed
};

}  // namespace trestle
