// What every component has: a name, configuration keys and a constructor from (Host, Attrs).
//
//   class ByteTokenizer : public gestalt::Tokenizer {
//    public:
//     static constexpr std::string_view name = "gestalt.byte";
//     static constexpr gestalt::ConfigKey keys[] = {
//         {.name = "bos", .type = "bool", .default_value = "false", .doc = "put <bos> before every text"}};  //
//         optional
//     ByteTokenizer(gestalt::Host host, gestalt::Attrs config);
//     ... overrides ...
//   };
//   GESTALT_COMPONENT(ByteTokenizer)
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "gestalt/attrs.hpp"
#include "gestalt/host.hpp"
#include "gestalt/registration.hpp"

namespace gestalt {

// One configuration key; see gestalt_config_key for the meaning. default_value, min and max are TOML literals.
struct ConfigKey {
  std::string_view name, type;
  std::string_view default_value = {}, min = {}, max = {}, choices = {}, when = {}, doc = {};
  bool required = false;
};

namespace detail {

// The object behind a component's `self`. Every base class has the type of its object, its kind and its C table.
template <class Base>
struct Held {
  const gestalt_host* host;
  std::unique_ptr<Base> object;
};

template <class Base>
Held<Base>& held(void* self) {
  return *static_cast<Held<Base>*>(self);
}

// Calls f(object) under the guard.
template <class Base, class F>
gestalt_status* with(void* self, F&& f) noexcept {
  Held<Base>& h = held<Base>(self);
  return guard(h.host, [&] { f(*h.object); });
}

// For functions of a table that report no error.
template <class F, class T>
T value_or(F&& f, T otherwise) noexcept {
  try {
    return f();
  } catch (...) {
    return otherwise;
  }
}

template <class C>
constexpr auto config_keys() {
  if constexpr (requires { C::keys[0]; }) {
    std::array<gestalt_config_key, sizeof(C::keys) / sizeof(C::keys[0])> keys{};
    for (size_t i = 0; i < keys.size(); ++i) {
      const ConfigKey& k = C::keys[i];
      keys[i] = {str_of(k.name), str_of(k.type), str_of(k.default_value),
                 str_of(k.min),  str_of(k.max),  str_of(k.choices),
                 str_of(k.when), str_of(k.doc),  k.required ? GESTALT_KEY_REQUIRED : 0u};
    }
    return keys;
  } else {
    return std::array<gestalt_config_key, 0>{};
  }
}

template <class C>
inline constexpr auto config_keys_of = config_keys<C>();

template <class C>
struct ComponentFunctions {
  using Base = typename C::ComponentBase;
  static gestalt_status* create(const gestalt_host* host, const gestalt_attr* config, uint64_t num,
                                void** self) noexcept {
    return guard(host, [&] { *self = new Held<Base>{host, Base::template make<C>(Host(host), Attrs(config, num))}; });
  }
  static void destroy(void* self) noexcept { delete &held<Base>(self); }
};

template <class C>
inline constexpr gestalt_component component_entry = {sizeof(gestalt_component),
                                                      str_of(C::ComponentBase::kKind),
                                                      str_of(C::name),
                                                      config_keys_of<C>.data(),
                                                      config_keys_of<C>.size(),
                                                      &ComponentFunctions<C>::create,
                                                      &ComponentFunctions<C>::destroy,
                                                      C::ComponentBase::template table<C>()};

// What the base class of a kind derives from.
template <class Base>
class ComponentOf {
 public:
  using ComponentBase = Base;
  virtual ~ComponentOf() = default;
  template <class C>
  static std::unique_ptr<Base> make(Host host, Attrs config) {
    return std::make_unique<C>(host, config);
  }

 protected:
  ComponentOf() = default;
  ComponentOf(const ComponentOf&) = delete;
  ComponentOf& operator=(const ComponentOf&) = delete;
};

}  // namespace detail
}  // namespace gestalt

#define GESTALT_COMPONENT(...) \
  GESTALT_REGISTER(gestalt_component, "gestalt_components", ::gestalt::detail::component_entry<__VA_ARGS__>)
