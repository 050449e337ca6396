#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/program/builder.h"
#include "tests/harness/environment.h"

namespace gestalt::harness {

using Bytes = std::vector<unsigned char>;

// A recorded program compiled for one device, with storage for its inputs.
class ProgramRun {
 public:
  // `pin`: backend of `op`; empty: load order. Inputs start as zeros.
  ProgramRun(const Environment& e, const OpenDevice& device, const std::string& op, const std::string& pin,
             int num_streams, const std::function<void(core::Builder&)>& record);
  ~ProgramRun();

  void write(const std::string& input, const Bytes& bytes);
  void run(bool accumulate = false);
  // Captured on first use.
  void replay();
  Bytes read_input(const std::string& name);
  Bytes read_output(const std::string& name);
  bool has_input(const std::string& name) const { return executable_->program().find_input(name) != nullptr; }
  bool capturable() const;
  const core::Executable& executable() const { return *executable_; }

 private:
  core::Device& device_;
  const std::vector<core::Stream>& streams_;
  core::DimTable dims_;
  std::vector<core::Buffer> arenas_;
  std::map<std::string, core::Buffer> inputs_;
  std::unique_ptr<core::Executable> executable_;
  core::Graph graph_;
};

}  // namespace gestalt::harness
