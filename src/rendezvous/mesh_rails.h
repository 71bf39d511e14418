// MeshRails: the rails of this host, as a communicator's control mesh uses them: one listener on each, where each
// neighbour listens, and which rails lead to it.
//
// Rails are those of host_rails.h, at which the ranks have met. Two ranks use those whose fabrics both have
// (transport/rails/pairing.h). Ranks of one host need none: their connections use no interface.
//
// Made by the thread that makes the communicator, then owned and used by its mesh. Nothing blocks.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control_mesh/control_rails.h"
#include "rendezvous/host_rails.h"

namespace trestle {

// A rail of this host, by its place among the listeners, and where the other rank listens on it.
struct RailWay {
  size_t listener = 0;
  SocketAddress to;
};
// The rails that lead to a rank with that meeting_text(). Empty: it has not several in common with this one, or is on
// the same host, or the text cannot be read.
std::vector<RailWay> rail_ways(const std::vector<RailListener>& listeners, const std::string& text);

class MeshRails final : public ControlRails {
 public:
  // Takes over the listeners. texts: the meeting_text() of each neighbour, by rank. One that cannot be read names no
  // place.
  MeshRails(const Credentials& credentials, std::vector<RailListener> listeners,
            const std::map<int32_t, std::string>& texts);

  Credentials credentials() const override { return credentials_; }
  size_t count() const override { return rails_.size(); }
  std::string name(size_t rail) const override;
  int listener(size_t rail) const override { return rails_[rail].listener.fd.get(); }
  std::vector<size_t> rails_to(int32_t rank) const override;
  std::vector<std::string> places(int32_t rank) const override;
  Result<UniqueFd> dial_place(int32_t rank, size_t place) override;
  Result<UniqueFd> dial(int32_t rank, size_t rail) override;
  void adopt(int fd, size_t rail) override;
  std::string rail_of(int fd) const override;

 private:
  Credentials credentials_;
  std::vector<RailListener> rails_;
  std::map<int32_t, std::vector<RailWay>> ways_;          // by rank
  std::map<int32_t, std::vector<SocketAddress>> places_;  // by rank
};

}  // namespace trestle
