#include "support/text_input/unpack.h"

#include <cstring>
#include <new>

#include "gestalt/error.hpp"

#ifdef GESTALT_TEXT_ZLIB
#include <zlib.h>
#endif
#ifdef GESTALT_TEXT_ZSTD
#include <zstd.h>
#endif
#ifdef GESTALT_TEXT_LZMA
#include <lzma.h>
#endif

namespace gestalt::support::text_input {
namespace {

using Unpacker = InputStream::Unpacker;

#ifdef GESTALT_TEXT_ZLIB
class Gzip : public Unpacker {
 public:
  Gzip() {
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() override { inflateEnd(&stream_); }
  bool step(Step* s) override {
    if (s->num_in == 0) return true;
    if (!open_) {  // several members in a row are one text
      if (inflateReset(&stream_) != Z_OK) return false;
      open_ = true;
    }
    stream_.next_in = const_cast<unsigned char*>(s->in);
    stream_.avail_in = static_cast<uInt>(s->num_in);
    stream_.next_out = s->out;
    stream_.avail_out = static_cast<uInt>(s->num_out < (1u << 30) ? s->num_out : 1u << 30);
    const uInt room = stream_.avail_out;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    s->num_in = stream_.avail_in;
    s->num_out -= room - stream_.avail_out;
    if (result == Z_STREAM_END) open_ = false;
    return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR;
  }
  bool whole() const override { return !open_; }

 private:
  z_stream stream_{};
  bool open_ = true;
};
#endif

#ifdef GESTALT_TEXT_ZSTD
class Zstd : public Unpacker {
 public:
  Zstd() : context_(ZSTD_createDCtx()) {
    if (!context_) throw std::bad_alloc();
  }
  ~Zstd() override { ZSTD_freeDCtx(context_); }
  bool step(Step* s) override {
    if (s->num_in == 0 && left_ == 0) return true;  // nothing after a frame, not the start of another
    ZSTD_inBuffer in{s->in, s->num_in, 0};
    ZSTD_outBuffer out{s->out, s->num_out, 0};
    left_ = ZSTD_decompressStream(context_, &out, &in);
    s->num_in -= in.pos;
    s->num_out -= out.pos;
    return !ZSTD_isError(left_);
  }
  bool whole() const override { return left_ == 0; }

 private:
  ZSTD_DCtx* context_;
  size_t left_ = 1;
};
#endif

#ifdef GESTALT_TEXT_LZMA
class Xz : public Unpacker {
 public:
  Xz() {
    if (lzma_stream_decoder(&stream_, UINT64_MAX, LZMA_CONCATENATED) != LZMA_OK) throw std::bad_alloc();
  }
  ~Xz() override { lzma_end(&stream_); }
  bool step(Step* s) override {
    stream_.next_in = s->in;
    stream_.avail_in = s->num_in;
    stream_.next_out = s->out;
    stream_.avail_out = s->num_out;
    const lzma_ret result = lzma_code(&stream_, s->last ? LZMA_FINISH : LZMA_RUN);
    s->num_in = stream_.avail_in;
    s->num_out = stream_.avail_out;
    whole_ = result == LZMA_STREAM_END;
    return result == LZMA_OK || result == LZMA_STREAM_END || result == LZMA_BUF_ERROR;
  }
  bool whole() const override { return whole_; }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool whole_ = false;
};
#endif

[[noreturn, maybe_unused]] void absent(const std::string& path, const char* format) {
  throw Error(GESTALT_UNSUPPORTED,
              "[" + path + "] is packed with " + format + ", which this build cannot read; unpack it first");
}

}  // namespace

std::unique_ptr<Unpacker> make_unpacker(const unsigned char* head, uint64_t size,
                                        [[maybe_unused]] const std::string& path) {
  const auto starts = [&](const char* magic, uint64_t n) { return size >= n && std::memcmp(head, magic, n) == 0; };
  if (starts("\x1F\x8B", 2)) {
#ifdef GESTALT_TEXT_ZLIB
    return std::make_unique<Gzip>();
#else
    absent(path, "gzip");
#endif
  }
  if (starts("\x28\xB5\x2F\xFD", 4)) {
#ifdef GESTALT_TEXT_ZSTD
    return std::make_unique<Zstd>();
#else
    absent(path, "zstd");
#endif
  }
  if (starts("\xFD"
             "7zXZ\0",
             6)) {
#ifdef GESTALT_TEXT_LZMA
    return std::make_unique<Xz>();
#else
    absent(path, "xz");
#endif
  }
  return nullptr;
}

}  // namespace gestalt::support::text_input
