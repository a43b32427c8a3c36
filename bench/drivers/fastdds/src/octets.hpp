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

namespace myelin {

class Octets : public eprosima::fastdds::dds::TopicDataType {
public:
  using Payload = eprosima::fastrtps::rtps::SerializedPayload_t;

  explicit Octets(std::uint32_t bytes) : bytes_(bytes)
  {
    setName(("myelin::Octets" + std::to_string(bytes)).c_str());
    m_typeSize = bytes + Payload::representation_header_size;
    /* XTypes information, which no two programs of one type need. */
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }

  bool serialize(void *data, Payload *payload) override
  {
    if (payload->max_size < m_typeSize)
      return false;
    payload->data[0] = payload->data[2] = payload->data[3] = 0;
    payload->data[1] = CDR_LE;
    payload->encapsulation = CDR_LE;
    payload->length = m_typeSize;
    std::memcpy(payload->data + Payload::representation_header_size, data, bytes_);
    return true;
  }

  bool deserialize(Payload *payload, void *data) override
  {
    if (payload->length != m_typeSize)
      return false;
    std::memcpy(data, payload->data + Payload::representation_header_size, bytes_);
    return true;
  }

  std::function<std::uint32_t()> getSerializedSizeProvider(void *) override
  {
    return [bytes = m_typeSize] { return bytes; };
  }

  void *createData() override { return new std::uint8_t[bytes_](); }
  void deleteData(void *data) override { delete[] static_cast<std::uint8_t *>(data); }

  bool getKey(void *, eprosima::fastrtps::rtps::InstanceHandle_t *, bool) override
  {
    return false;
  }

  bool is_bounded() const override { return true; }
  bool is_plain() const override { return true; }

  bool construct_sample(void *memory) const override
  {
    std::memset(memory, 0, bytes_);
    return true;
  }

private:
  std::uint32_t bytes_;
};

} // namespace myelin

#endif
