/* The type of a run: so many octets, what an IDL generator makes of `struct { octet bytes[N]; }`.
 * It is plain and bounded, so its serialised form is its memory behind four bytes of encapsulation:
 * loans can be written in place, and taken samples can be read where they lie.
 */
#ifndef MYELIN_FASTDDS_OCTETS_HPP
#define MYELIN_FASTDDS_OCTETS_HPP

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

#include <fastdds/dds/topic/TopicDataType.hpp>

#include "versions.hpp"

namespace myelin {

class Octets : public eprosima::fastdds::dds::TopicDataType {
public:
  explicit Octets(std::uint32_t bytes)
      : bytes_(bytes), serialised_bytes_(bytes + SerializedPayload_t::representation_header_size)
  {
    const std::string name = "myelin::Octets" + std::to_string(bytes);
#if FASTDDS_VERSION_MAJOR >= 3
    set_name(name);
    max_serialized_type_size = serialised_bytes_;
#else
    setName(name.c_str());
    m_typeSize = serialised_bytes_;
    /* XTypes information, which no two programs of one type need. 3 has none of its own accord. */
    auto_fill_type_object(false);
    auto_fill_type_information(false);
#endif
  }

  bool is_bounded() const override { return true; }

  bool construct_sample(void *memory) const override
  {
    std::memset(memory, 0, bytes_);
    return true;
  }

#if FASTDDS_VERSION_MAJOR >= 3
  using Representation = eprosima::fastdds::dds::DataRepresentationId_t;

  bool serialize(const void *data, SerializedPayload_t &payload, Representation) override
  {
    return write(data, payload);
  }

  bool deserialize(SerializedPayload_t &payload, void *data) override
  {
    return read(payload, data);
  }

  std::uint32_t calculate_serialized_size(const void *, Representation) override
  {
    return serialised_bytes_;
  }

  void *create_data() override { return new std::uint8_t[bytes_](); }
  void delete_data(void *data) override { delete[] static_cast<std::uint8_t *>(data); }
  bool compute_key(SerializedPayload_t &, InstanceHandle_t &, bool) override { return false; }
  bool compute_key(const void *, InstanceHandle_t &, bool) override { return false; }
  bool is_plain(Representation) const override { return true; }
#else
  bool serialize(void *data, SerializedPayload_t *payload) override
  {
    return write(data, *payload);
  }

  bool deserialize(SerializedPayload_t *payload, void *data) override
  {
    return read(*payload, data);
  }

  std::function<std::uint32_t()> getSerializedSizeProvider(void *) override
  {
    return [bytes = serialised_bytes_] { return bytes; };
  }

  void *createData() override { return new std::uint8_t[bytes_](); }
  void deleteData(void *data) override { delete[] static_cast<std::uint8_t *>(data); }
  bool getKey(void *, InstanceHandle_t *, bool) override { return false; }
  bool is_plain() const override { return true; }
#endif

private:
  bool write(const void *data, SerializedPayload_t &payload) const
  {
    if (payload.max_size < serialised_bytes_)
      return false;
    payload.data[0] = payload.data[2] = payload.data[3] = 0;
    payload.data[1] = CDR_LE;
    payload.encapsulation = CDR_LE;
    payload.length = serialised_bytes_;
    std::memcpy(payload.data + SerializedPayload_t::representation_header_size, data, bytes_);
    return true;
  }

  bool read(const SerializedPayload_t &payload, void *data) const
  {
    if (payload.length != serialised_bytes_)
      return false;
    std::memcpy(data, payload.data + SerializedPayload_t::representation_header_size, bytes_);
    return true;
  }

  std::uint32_t bytes_;
  std::uint32_t serialised_bytes_;
};

} // namespace myelin

#endif
