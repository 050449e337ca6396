// The parts of the commit protocol by themselves; tests/reliability/checkpoints disturbs the whole.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <numeric>

#include "core/checkpoint/digest.h"
#include "core/checkpoint/folder.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/shard.h"
#include "tests/catch_compat.hpp"
#include "tests/temporary_folder.h"
#include "tests/thrown_error.h"

namespace gestalt::core {

namespace {

namespace fs = std::filesystem;
using test::message_of;
using test::TemporaryFolder;
using Names = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

StoredTensor tensor(const std::string& name, std::vector<int64_t> shape, std::vector<StoredPiece> pieces) {
  return {name, GESTALT_F32, std::move(shape), {}, std::string(32, 'a'), std::move(pieces)};
}
StoredPiece piece(std::vector<int64_t> offset, std::vector<int64_t> shape) { return {0, std::move(offset), std::move(shape), std::string(32, 'b')}; }

CheckpointManifest sample() {
  CheckpointManifest m;
  m.state = {12, 48, "d1", "t1"};
  m.previous = 10;
  m.seed = ~uint64_t{0};
  m.attempt = "a-1";
  m.component = "gestalt.hdf5";
  m.files = {{"shard-00000.h5", 1000, std::string(64, '0')}, {"run.toml", 10, std::string(64, '1')}};
  m.tensors = {tensor("a.weight", {4, 6}, {piece({0, 0}, {1, 6}), piece({1, 0}, {3, 6})}), tensor("b.scale", {}, {piece({}, {})}),
               tensor("c.empty", {0, 3}, {piece({0, 0}, {0, 3})})};
  m.digest = state_digest(m);
  return m;
}

void make(const fs::path& folder, const Names& names) {
  for (const std::string& n : names) fs::create_directories(folder / n);
}
Names names_in(const fs::path& folder) {
  Names list;
  for (const auto& e : fs::directory_iterator(folder)) list.push_back(e.path().filename().native());
  std::sort(list.begin(), list.end());
  return list;
}

}  // namespace

TEST_CASE("XXH3-128 of nothing and of bytes is the published one") {
  CHECK(xxh3_hex("", 0) == "99aa06d3014798d86001c324468d497f");
  CHECK(xxh3_hex("a", 1) == "a96faf705af16834e6c632b61e964e1f");
}

TEST_CASE("a manifest comes back from its text, and damage of a value is refused") {
  const CheckpointManifest m = sample();
  const std::string text = to_json(m);
  const CheckpointManifest back = parse_checkpoint_manifest(text, "manifest.json");
  CHECK(to_json(back) == text);
  CHECK(back.seed == m.seed);
  CHECK(back.find("b.scale") != nullptr);
  CHECK(back.find("b") == nullptr);
  auto refused = [&](const std::string& what, const std::string& by) {
    std::string other = text;
    REQUIRE(contains(other, what));
    other.replace(other.find(what), what.size(), by);
    const Error e = test::thrown_by([&] { parse_checkpoint_manifest(other, "manifest.json"); });
    CHECK(e.code() == GESTALT_DATA_ERROR);
    return e.message();
  };
  CHECK(contains(refused("\"step\": 12", "\"step\": 13"), "state digest"));
  CHECK(contains(refused("\"version\": 1", "\"version\": 2"), "version 2"));
  CHECK(contains(refused("shard-00000.h5", "../etc/passwd"), "not plain"));
  CHECK(contains(refused("a.weight", "z.weight"), "out of order"));
  CHECK(contains(refused("\"file\": 0", "\"file\": 7"), "without file"));
}

TEST_CASE("pieces that leave a gap, overlap, or lie outside their tensor are refused with its name") {
  auto check_pieces = [](std::vector<StoredPiece> pieces) {
    CheckpointManifest m;
    m.tensors = {tensor("w", {4, 6}, std::move(pieces))};
    return message_of([&] { check_coverage(m); });
  };
  CHECK(contains(check_pieces({}), "'w' has no piece"));
  CHECK(contains(check_pieces({piece({0, 0}, {3, 6})}), "18 elements in its pieces, expected 24"));
  CHECK(contains(check_pieces({piece({0, 0}, {3, 6}), piece({2, 0}, {1, 6})}), "overlapping"));
  CHECK(contains(check_pieces({piece({2, 0}, {3, 6})}), "outside it: offset 2 and size 3 of 4"));
  CHECK(contains(check_pieces({piece({-1, 0}, {4, 6})}), "outside"));
  CHECK(contains(check_pieces({piece({0}, {24})}), "of 1 dimensions"));
  CheckpointManifest huge;
  huge.tensors = {tensor("w", {int64_t{1} << 40, int64_t{1} << 40}, {piece({0, 0}, {1, 1})})};
  CHECK(contains(message_of([&] { check_coverage(huge); }), "out of range"));
}

TEST_CASE("slabs of any number of writers cover every tensor, in about equal shares") {
  const std::vector<HostTensor> tensors = {{"a", GESTALT_F32, {100, 10}, {}, nullptr}, {"b", GESTALT_BF16, {}, {}, nullptr},
                                           {"c", GESTALT_F32, {0, 4}, {}, nullptr}, {"d", GESTALT_F32, {1, 50}, {}, nullptr}};
  for (int64_t writers : {1, 2, 3, 4, 7, 200}) {
    INFO(writers);
    const auto shares = share_out(tensors, writers);
    CHECK(static_cast<int64_t>(shares.size()) <= writers);
    CheckpointManifest m;
    for (const HostTensor& t : tensors) m.tensors.push_back({t.name, t.dtype, t.shape, {}, "", {}});
    for (const auto& share : shares) {
      CHECK(!share.empty());
      uint64_t bytes = 0;
      for (const Slab& s : share) {
        StoredPiece p{0, std::vector<int64_t>(tensors[s.tensor].shape.size(), 0), tensors[s.tensor].shape, ""};
        if (!p.shape.empty()) {
          p.offset[0] = s.first;
          p.shape[0] = s.rows;
        }
        bytes += bytes_of(tensors[s.tensor].dtype, p.shape);
        m.tensors[s.tensor].pieces.push_back(p);
      }
      CHECK(bytes <= 4202 / static_cast<uint64_t>(writers) + 202);
    }
    CHECK_NOTHROW(check_coverage(m));
  }
}

TEST_CASE("boxes put together make the tensor") {
  const std::vector<int64_t> shape = {3, 4, 5};
  std::vector<uint16_t> want(60), got(60, 0xffff);
  std::iota(want.begin(), want.end(), uint16_t{0});
  for (const auto& [offset, box] : std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>>{
           {{0, 0, 0}, {1, 4, 5}}, {{1, 0, 0}, {2, 2, 5}}, {{1, 2, 0}, {2, 2, 3}}, {{1, 2, 3}, {2, 2, 2}}, {{0, 0, 0}, {0, 4, 5}}}) {
    std::vector<uint16_t> part;
    for (int64_t a = 0; a < box[0]; ++a)
      for (int64_t b = 0; b < box[1]; ++b)
        for (int64_t c = 0; c < box[2]; ++c)
          part.push_back(want[static_cast<size_t>(((offset[0] + a) * 4 + offset[1] + b) * 5 + offset[2] + c)]);
    place_box(shape, offset, box, 2, reinterpret_cast<const char*>(part.data()), reinterpret_cast<char*>(got.data()));
  }
  CHECK(got == want);
}

TEST_CASE("only whole names are checkpoints, and attempts and rubbish are removed") {
  const TemporaryFolder folder;
  make(folder.path(), {"step-00000003", "step-00000010", "step-123456789", "step-3", "step-00000004.tmp-x", ".trash-step-00000001", "notes"});
  std::vector<int64_t> steps;
  for (const Committed& c : committed(folder.path())) steps.push_back(c.step);
  CHECK(steps == std::vector<int64_t>{3, 10, 123456789});
  remove_leftovers(folder.path());
  CHECK(names_in(folder.path()) == Names{"notes", "step-00000003", "step-00000010", "step-123456789", "step-3"});
  CHECK(committed(folder.path() / "nothing").empty());
}

TEST_CASE("retention keeps the newest, the one just written and those that are marked") {
  const TemporaryFolder folder;
  make(folder.path(), {"step-00000001/KEEP", "step-00000002", "step-00000003", "step-00000004"});
  retire_old(folder.path(), 2, 4, "a");
  CHECK(names_in(folder.path()) == Names{"step-00000001", "step-00000003", "step-00000004"});
  retire_old(folder.path(), 1, 3, "a");
  CHECK(names_in(folder.path()) == Names{"step-00000001", "step-00000003"});
}

TEST_CASE("checkpoints of another history are set aside, not removed") {
  const TemporaryFolder folder;
  make(folder.path(), {"step-00000001", "step-00000002", "step-00000003"});
  CHECK(set_aside_after(folder.path(), 1, "x") == 2);
  CHECK(names_in(folder.path()) == Names{"aside-x-step-00000002", "aside-x-step-00000003", "step-00000001"});
}

TEST_CASE("a folder has one owner, who is named, and a dead one's lock is taken over") {
  const TemporaryFolder folder;
  {
    const FolderLock lock(folder.path());
    CHECK(contains(message_of([&] { FolderLock other(folder.path()); }), fmt::format("in use by process {}", ::getpid())));
  }
  CHECK(names_in(folder.path()).empty());
  const pid_t child = ::fork();
  if (child == 0) {
    new FolderLock(folder.path());
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  CHECK(names_in(folder.path()) == Names{"LOCK"});
  { const FolderLock lock(folder.path()); }
  folder.write("LOCK", "pid=1\nhost=some.other.host\nattempt=z\n");
  CHECK(contains(message_of([&] { FolderLock other(folder.path()); }), "remove the file LOCK"));
}

}  // namespace gestalt::core
