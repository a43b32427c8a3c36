#include "event.hpp"

#include <utility>
#include <vector>

#include "publisher.hpp"
#include "subscription.hpp"

namespace rmw_myelin {
namespace {

int32_t to_int32(int64_t count) { return static_cast<int32_t>(count); }

}  // namespace

static bool is_of_publisher(int type) {
  switch (type) {
    case RMW_EVENT_LIVELINESS_LOST:
    case RMW_EVENT_OFFERED_DEADLINE_MISSED:
    case RMW_EVENT_OFFERED_QOS_INCOMPATIBLE:
    case publisher_incompatible_type:
    case publication_matched:
      return true;
    default:
      return false;
  }
}

bool Events::is_supported(int type) {
  switch (type) {
    case RMW_EVENT_LIVELINESS_CHANGED:
    case RMW_EVENT_REQUESTED_DEADLINE_MISSED:
    case RMW_EVENT_REQUESTED_QOS_INCOMPATIBLE:
    case RMW_EVENT_MESSAGE_LOST:
    case subscription_incompatible_type:
    case subscription_matched:
      return true;
    default:
      return is_of_publisher(type);
  }
}

Trigger &Events::changed(int type) { return state_of(type).changed; }

void Events::deliver() {
  if (!is_undelivered_.exchange(false)) return;
  std::vector<EventState *> states;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto &[type, state] : states_) states.push_back(&state);
  }
  for (EventState *state : states) {
    state->callback.deliver();
    // A wait for an event that also has a callback ends only after the call.
    const std::lock_guard<std::mutex> lock(mutex_);
    if (state->is_new) state->changed.fire();
  }
}

void Events::set_callback(int type, rmw_event_callback_t callback, const void *user_data) {
  state_of(type).callback.set(callback, user_data);
}

void Events::take(int type, void *info) {
  const std::lock_guard<std::mutex> lock(mutex_);
  EventState &state = states_[type];
  state.changed.clear();
  state.is_new = false;
  state.callback.forget();
  const auto change = std::exchange(state.total_change, 0);
  const auto current_change = std::exchange(state.current_change, 0);
  const auto other_change = std::exchange(state.other_change, 0);
  switch (type) {
    case RMW_EVENT_LIVELINESS_CHANGED:
      *static_cast<rmw_liveliness_changed_status_t *>(info) = {
          to_int32(state.current), to_int32(state.other), to_int32(current_change), to_int32(other_change)};
      break;
    case RMW_EVENT_REQUESTED_QOS_INCOMPATIBLE:
    case RMW_EVENT_OFFERED_QOS_INCOMPATIBLE:
      *static_cast<rmw_qos_incompatible_event_status_t *>(info) = {to_int32(state.total), to_int32(change),
                                                                   state.policy};
      break;
    case RMW_EVENT_MESSAGE_LOST:
      *static_cast<rmw_message_lost_status_t *>(info) = {static_cast<size_t>(state.total),
                                                         static_cast<size_t>(change)};
      break;
    case subscription_matched:
    case publication_matched:
      *static_cast<rmw_matched_status_t *>(info) = {
          static_cast<size_t>(state.total), static_cast<size_t>(change),
          static_cast<size_t>(state.current), to_int32(current_change)};
      break;
    default:
      // All others are a count and its change, 32 bits each.
      *static_cast<rmw_liveliness_lost_status_t *>(info) = {to_int32(state.total), to_int32(change)};
  }
}

namespace {

rmw_ret_t init(rmw_event_t *event, Events &events, rmw_event_type_t type) {
  if (event->implementation_identifier != nullptr) {
    RMW_SET_ERROR_MSG("expected zero-initialized event");
    return RMW_RET_INVALID_ARGUMENT;
  }
  if (!Events::is_supported(type)) {
    RMW_SET_ERROR_MSG("this event is not supported");
    return RMW_RET_UNSUPPORTED;
  }
  event->implementation_identifier = identifier;
  event->data = &events;
  event->event_type = type;
  return RMW_RET_OK;
}

Events &events_of(const rmw_event_t &event) { return *static_cast<Events *>(event.data); }

}  // namespace

Trigger &event_trigger(const rmw_event_t &event) {
  return events_of(event).changed(event.event_type);
}

}  // namespace rmw_myelin

using rmw_myelin::Events;

extern "C" {

RMW_PUBLIC rmw_ret_t rmw_publisher_event_init(rmw_event_t *rmw_event, const rmw_publisher_t *publisher,
                                              rmw_event_type_t event_type) try {
  CHECK_ARGUMENT(rmw_event);
  CHECK_HANDLE(publisher);
  if (Events::is_supported(event_type) && !rmw_myelin::is_of_publisher(event_type)) {
    RMW_SET_ERROR_MSG("publishers do not have this event");
    return RMW_RET_UNSUPPORTED;
  }
  auto &own = *static_cast<rmw_myelin::Publisher *>(publisher->data);
  return rmw_myelin::init(rmw_event, own.writer.events(), event_type);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_subscription_event_init(rmw_event_t *rmw_event,
                                                 const rmw_subscription_t *subscription,
                                                 rmw_event_type_t event_type) try {
  CHECK_ARGUMENT(rmw_event);
  CHECK_HANDLE(subscription);
  if (rmw_myelin::is_of_publisher(event_type)) {
    RMW_SET_ERROR_MSG("subscriptions do not have this event");
    return RMW_RET_UNSUPPORTED;
  }
  auto &own = *static_cast<rmw_myelin::Subscription *>(subscription->data);
  return rmw_myelin::init(rmw_event, own.reader.events(), event_type);
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_take_event(const rmw_event_t *event_handle, void *event_info, bool *taken) try {
  CHECK_HANDLE(event_handle);
  CHECK_ARGUMENT(event_info);
  CHECK_ARGUMENT(taken);
  rmw_myelin::events_of(*event_handle).take(event_handle->event_type, event_info);
  *taken = true;
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC rmw_ret_t rmw_event_set_callback(rmw_event_t *event, rmw_event_callback_t callback,
                                            const void *user_data) try {
  CHECK_HANDLE(event);
  rmw_myelin::events_of(*event).set_callback(event->event_type, callback, user_data);
  return RMW_RET_OK;
} CONTAIN

RMW_PUBLIC bool rmw_event_type_is_supported(rmw_event_type_t rmw_event_type) {
  return Events::is_supported(rmw_event_type);
}

}  // extern "C"
