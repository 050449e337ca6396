// Custom patterns. The text is checked for well-formed UTF-8 once per stretch, never per match, and matched with
// NO_UTF_CHECK: a check in every call would be quadratic. A match never reaches over a stray byte; a stray byte and
// text that the pattern does not match are pieces of their own, so nothing is lost.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>

#include "gestalt/error.hpp"
#include "support/bpe/scanner.h"

namespace gestalt::support::bpe {
namespace {

class Pcre2Scanner : public Scanner {
 public:
  explicit Pcre2Scanner(std::shared_ptr<const void> compiled)
      : compiled_(std::move(compiled)),
        code_(static_cast<const pcre2_code*>(compiled_.get())),
        data_(pcre2_match_data_create(1, nullptr)),
        context_(pcre2_match_context_create(nullptr)),
        stack_(pcre2_jit_stack_create(32 * 1024, 8 * 1024 * 1024, nullptr)) {
    if (!data_ || !context_) throw std::bad_alloc();
    pcre2_set_match_limit(context_, 100'000'000);
    pcre2_set_depth_limit(context_, 1'000'000);
    if (stack_) pcre2_jit_stack_assign(context_, nullptr, stack_);
  }
  Pcre2Scanner(const Pcre2Scanner&) = delete;
  Pcre2Scanner& operator=(const Pcre2Scanner&) = delete;
  ~Pcre2Scanner() override {
    pcre2_match_data_free(data_);
    pcre2_match_context_free(context_);
    if (stack_) pcre2_jit_stack_free(stack_);
  }

  const uint8_t* next(const uint8_t* start, const uint8_t* p, const uint8_t* end) override {
    if (p == start || p >= valid_end_ || start != start_) find_stretch(start, p, end);
    if (valid_end_ == p) return p + 1;  // a stray byte
    if (p < match_begin_) return match_begin_;
    if (p == match_begin_) return match_end_;
    const int found =
        pcre2_match(code_, valid_begin_, static_cast<PCRE2_SIZE>(valid_end_ - valid_begin_),
                    static_cast<PCRE2_SIZE>(p - valid_begin_), PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, data_, context_);
    if (found < 0 && found != PCRE2_ERROR_NOMATCH) {
      PCRE2_UCHAR text[256] = {};
      pcre2_get_error_message(found, text, sizeof text);
      throw Error(GESTALT_DATA_ERROR,
                  std::string("[pattern] matching stopped: ") + reinterpret_cast<const char*>(text));
    }
    if (found >= 0) {
      const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data_);
      match_begin_ = valid_begin_ + ends[0];
      match_end_ = valid_begin_ + ends[1];
      // A pattern with \K can report a match that starts before p; its rest is then unmatched text.
      if (match_begin_ >= p && match_end_ > match_begin_) return match_begin_ == p ? match_end_ : match_begin_;
    }
    match_begin_ = match_end_ = valid_end_;
    return valid_end_;
  }

 private:
  void find_stretch(const uint8_t* start, const uint8_t* p, const uint8_t* end) {
    start_ = start;
    valid_begin_ = p;
    match_begin_ = match_end_ = nullptr;
    while (p < end) {
      const Char c = decode_char(p, end);
      if (!c.valid) break;
      p += c.size;
    }
    valid_end_ = p;
  }

  std::shared_ptr<const void> compiled_;
  const pcre2_code* code_;
  pcre2_match_data* data_;
  pcre2_match_context* context_;
  pcre2_jit_stack* stack_;
  const uint8_t* start_ = nullptr;
  const uint8_t* valid_begin_ = nullptr;
  const uint8_t* valid_end_ = nullptr;
  const uint8_t* match_begin_ = nullptr;
  const uint8_t* match_end_ = nullptr;
};

}  // namespace

bool has_pcre2() { return true; }

std::shared_ptr<const void> compile_pcre2(const std::string& regex) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(regex.data()), regex.size(), PCRE2_UTF | PCRE2_UCP,
                                   &error, &offset, nullptr);
  if (!code) {
    PCRE2_UCHAR text[256] = {};
    pcre2_get_error_message(error, text, sizeof text);
    throw InvalidArgument("[pattern] got \"" + regex + "\", wrong at character " + std::to_string(offset) + ": " +
                          reinterpret_cast<const char*>(text));
  }
  // Where the system forbids making code at run time, the interpreter gives the same matches.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  return {code, [](const void* p) { pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(p))); }};
}

std::unique_ptr<Scanner> make_pcre2_scanner(std::shared_ptr<const void> compiled) {
  return std::make_unique<Pcre2Scanner>(std::move(compiled));
}

}  // namespace gestalt::support::bpe
