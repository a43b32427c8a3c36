#include "plan.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "rosidl_runtime_c/string.h"
#include "rosidl_runtime_c/u16string.h"
#include "rosidl_typesupport_introspection_c/field_types.h"
#include "rosidl_typesupport_introspection_c/message_introspection.h"
#include "rosidl_typesupport_introspection_cpp/message_introspection.hpp"

namespace rmw_myelin {
namespace {

/// Plans of nested types. Each is made once.
using Known = std::map<const void *, std::shared_ptr<const Plan>>;

std::shared_ptr<const Plan> plan_of(const void *members, bool is_cpp, Known &known);

size_t number_bytes(uint8_t type) {
  switch (type) {
    case rosidl_typesupport_introspection_c__ROS_TYPE_BOOLEAN:
    case rosidl_typesupport_introspection_c__ROS_TYPE_CHAR:
    case rosidl_typesupport_introspection_c__ROS_TYPE_OCTET:
    case rosidl_typesupport_introspection_c__ROS_TYPE_UINT8:
    case rosidl_typesupport_introspection_c__ROS_TYPE_INT8:
      return 1;
    case rosidl_typesupport_introspection_c__ROS_TYPE_WCHAR:
    case rosidl_typesupport_introspection_c__ROS_TYPE_UINT16:
    case rosidl_typesupport_introspection_c__ROS_TYPE_INT16:
      return 2;
    case rosidl_typesupport_introspection_c__ROS_TYPE_FLOAT:
    case rosidl_typesupport_introspection_c__ROS_TYPE_UINT32:
    case rosidl_typesupport_introspection_c__ROS_TYPE_INT32:
      return 4;
    case rosidl_typesupport_introspection_c__ROS_TYPE_DOUBLE:
    case rosidl_typesupport_introspection_c__ROS_TYPE_UINT64:
    case rosidl_typesupport_introspection_c__ROS_TYPE_INT64:
      return 8;
    case rosidl_typesupport_introspection_c__ROS_TYPE_LONG_DOUBLE:
      return 16;
    default:
      return 0;
  }
}

size_t aligned(size_t at, size_t align) { return (at + align - 1) / align * align; }

/// Appends bytes. Extends the previous step if the bytes follow it both in memory and in CDR, wherever that begins.
void append_bytes(std::vector<Step> &steps, Step step) {
  if (!steps.empty()) {
    Step &before = steps.back();
    const size_t end = before.offset + before.count;
    if (before.kind == Kind::bytes && end == step.offset && step.align <= before.align &&
        before.count % step.align == 0) {
      before.count += step.count;
      return;
    }
  }
  steps.push_back(std::move(step));
}

/// Appends the steps of a nested struct at `offset`.
void append_struct(std::vector<Step> &steps, const Plan &plan, size_t offset) {
  for (Step step : plan.steps) {
    step.offset += offset;
    if (step.kind == Kind::bytes) {
      append_bytes(steps, std::move(step));
    } else {
      steps.push_back(std::move(step));
    }
  }
}

/// In CDR no alignment exceeds 8: a long double has 16 bytes and is aligned to 8.
uint8_t cdr_align(size_t bytes) { return static_cast<uint8_t>(bytes < 8 ? bytes : 8); }

void set_resize(Step &step, bool (*resize)(void *, size_t)) { step.resize_c = resize; }
void set_resize(Step &step, void (*resize)(void *, size_t)) { step.resize_cpp = resize; }

template <typename Member>
Step step_of(const Member &member) {
  Step step{};
  step.offset = member.offset_;
  step.name = member.name_;
  step.string_bound = member.string_upper_bound_ > 0 ? member.string_upper_bound_ : SIZE_MAX;
  if (member.is_array_) {
    step.size_of = member.size_function;
    step.get_const = member.get_const_function;
    step.get = member.get_function;
    step.fetch = member.fetch_function;
    step.assign = member.assign_function;
    set_resize(step, member.resize_function);
    if (member.is_upper_bound_) step.bound = member.array_size_;
  }
  return step;
}

template <typename Member>
void append_number(Plan &plan, const Member &member, size_t bytes) {
  Step step = step_of(member);
  step.align = cdr_align(bytes);
  step.stride = bytes;
  if (!member.is_array_ || (member.array_size_ > 0 && !member.is_upper_bound_)) {
    step.kind = Kind::bytes;
    step.count = bytes * (member.is_array_ ? member.array_size_ : 1);
    return append_bytes(plan.steps, std::move(step));
  }
  const bool is_bool = member.type_id_ == rosidl_typesupport_introspection_c__ROS_TYPE_BOOLEAN;
  step.kind = plan.is_cpp && is_bool ? Kind::bools : Kind::sequence;
  plan.steps.push_back(std::move(step));
}

size_t string_bytes(bool is_cpp, bool is_wide) {
  if (is_cpp) return is_wide ? sizeof(std::u16string) : sizeof(std::string);
  return is_wide ? sizeof(rosidl_runtime_c__U16String) : sizeof(rosidl_runtime_c__String);
}

template <typename Member>
void append_string(Plan &plan, const Member &member, bool is_wide) {
  Step step = step_of(member);
  if (!member.is_array_) {
    step.kind = is_wide ? Kind::wide_string : Kind::string;
    plan.steps.push_back(std::move(step));
    return;
  }
  step.stride = string_bytes(plan.is_cpp, is_wide);
  if (member.array_size_ > 0 && !member.is_upper_bound_) {
    // Each element has a step of its own.
    step.kind = is_wide ? Kind::wide_string : Kind::string;
    for (size_t at = 0; at < member.array_size_; ++at, step.offset += step.stride) {
      plan.steps.push_back(step);
    }
    return;
  }
  step.kind = is_wide ? Kind::wide_strings : Kind::strings;
  plan.steps.push_back(std::move(step));
}

template <typename Member>
void append_message(Plan &plan, const Member &member, Known &known) {
  const auto inner = plan_of(member.members_->data, plan.is_cpp, known);
  if (!member.is_array_) return append_struct(plan.steps, *inner, member.offset_);
  Step step = step_of(member);
  step.plan = inner;
  step.stride = inner->bytes;
  step.align = static_cast<uint8_t>(inner->align);
  if (member.array_size_ > 0 && !member.is_upper_bound_) {
    step.count = member.array_size_;
    if (inner->plain && *inner->plain == inner->bytes) {
      step.kind = Kind::bytes;
      step.count *= inner->bytes;
      step.plan.reset();
      return append_bytes(plan.steps, std::move(step));
    }
    step.kind = Kind::structs;
  } else {
    step.kind = Kind::struct_sequence;
  }
  plan.steps.push_back(std::move(step));
}

template <typename Member>
void append(Plan &plan, const Member &member, Known &known) {
  switch (member.type_id_) {
    case rosidl_typesupport_introspection_c__ROS_TYPE_STRING:
      return append_string(plan, member, false);
    case rosidl_typesupport_introspection_c__ROS_TYPE_WSTRING:
      return append_string(plan, member, true);
    case rosidl_typesupport_introspection_c__ROS_TYPE_MESSAGE:
      return append_message(plan, member, known);
    default:
      break;
  }
  const size_t bytes = number_bytes(member.type_id_);
  if (bytes == 0) {
    throw std::runtime_error(std::string("member ") + member.name_ + " has an unknown type");
  }
  append_number(plan, member, bytes);
}

/// Returns the size of the struct if its CDR equals its memory, padding included, at every multiple of `align`.
std::optional<size_t> plain_bytes(const Plan &plan, size_t align) {
  size_t at = 0;
  for (const Step &step : plan.steps) {
    if (step.kind != Kind::bytes || step.align > align) return std::nullopt;
    at = aligned(at, step.align);
    if (step.offset != at) return std::nullopt;
    at += step.count;
  }
  return at;
}

size_t cdr_bytes_min(const Plan &plan) {
  size_t bytes = 0;
  for (const Step &step : plan.steps) {
    switch (step.kind) {
      case Kind::bytes:
        bytes += step.count;
        break;
      case Kind::structs:
        bytes += step.count * step.plan->cdr_bytes_min;
        break;
      default:
        bytes += 4;
    }
  }
  return bytes;
}

bool may_be_large(const Plan &plan) {
  return plan.bytes > 4096 ||
         std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step &step) {
           const bool is_sequence = step.kind == Kind::sequence || step.kind == Kind::struct_sequence;
           return (is_sequence && step.bound == SIZE_MAX) || (step.plan && step.plan->may_be_large);
         });
}

template <typename Members>
std::shared_ptr<const Plan> plan_of_members(const Members &members, bool is_cpp, Known &known) {
  auto plan = std::make_shared<Plan>();
  plan->is_cpp = is_cpp;
  plan->bytes = members.size_of_;
  for (uint32_t at = 0; at < members.member_count_; ++at) append(*plan, members.members_[at], known);
  if (!plan->steps.empty()) plan->align = plan->steps.front().align;
  plan->plain = plain_bytes(*plan, plan->align);
  plan->plain_message = plain_bytes(*plan, 8);
  plan->cdr_bytes_min = cdr_bytes_min(*plan);
  plan->may_be_large = may_be_large(*plan);
  return plan;
}

std::shared_ptr<const Plan> plan_of(const void *members, bool is_cpp, Known &known) {
  auto &plan = known[members];
  if (plan) return plan;
  if (is_cpp) {
    using Members = rosidl_typesupport_introspection_cpp::MessageMembers;
    plan = plan_of_members(*static_cast<const Members *>(members), true, known);
  } else {
    using Members = rosidl_typesupport_introspection_c__MessageMembers;
    plan = plan_of_members(*static_cast<const Members *>(members), false, known);
  }
  return plan;
}

}  // namespace

std::shared_ptr<const Plan> make_plan(const void *members, bool is_cpp) {
  Known known;
  return plan_of(members, is_cpp, known);
}

}  // namespace rmw_myelin
