// MeshRails: the rails of this host, as a communicator's control mesh uses them: one listener on each, and which of
// them lead to which rank.
//
// Rails are those of host_rails.h. Two ranks use those whose fabrics both have (transport/rails/pairing.h). Ranks of
// one host need none: their connections use no interface.
//
// Made by the thread that makes the communicator, then owned and used by its mesh. Nothing blocks.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control_mesh/control_rails.h"
#include "rendezvous/host_rails.h"
#include "transport/rails/published.h"
#include "transport/socket/socket.h"

namespace trestle {

class MeshRails final : public ControlRails {
 public:
  // Listens on all rails. nullptr, with a line in the log at INFO: there are not several, or the ranks have met over
  // none of them. Never an error: a mesh without rails is one whose connections stay where they are.
  static std::unique_ptr<MeshRails> create(const Credentials& credentials, const HostRailsRequest& request);

  // For the other ranks, as published.h says.
  const std::string& address() const { return address_; }
  // By rank; "": that rank has not several. False: there is no rank with which this one has several in common.
  bool set_peers(const std::vector<std::string>& addresses);

  Credentials credentials() const override { return credentials_; }
  size_t count() const override { return rails_.size(); }
  std::string name(size_t rail) const override { return rails_[rail].name; }
  int listener(size_t rail) const override { return rails_[rail].listener.fd.get(); }
  std::vector<size_t> rails_to(int32_t rank) const override;
  Result<UniqueFd> dial(int32_t rank, size_t rail) override;
  void adopt(int fd, size_t rail) override;
  std::string rail_of(int fd) const override;

 private:
  struct OwnRail {
    std::string name;
    Listener listener;
  };
  struct Way {
    size_t rail;
    SocketAddress to;
  };

  Status open(const HostRailsRequest& request);
  std::vector<Way> ways_to(const std::string& address) const;

  Credentials credentials_;
  std::vector<OwnRail> rails_;
  std::vector<PublishedRail> published_;
  std::string address_;
  std::vector<std::vector<Way>> ways_;  // by rank
};

}  // namespace trestle
