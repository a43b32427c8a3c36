/* Layout hashes as C describes them, in the order that the test expects. */
#include "check.h"

struct inner { float at[3][2]; bool closed; uint8_t _pad[7]; };
struct outer { int64_t big; struct inner inner[2]; char name[16]; int16_t tail[4]; };

static const struct myelin_field inner_fields[] = {
    MYELIN_FIELD_OF(struct inner, at, MYELIN_F32, 3, 2), MYELIN_FIELD(struct inner, closed),
    MYELIN_FIELD(struct inner, _pad)};
static const struct myelin_struct inner = MYELIN_STRUCT_OF(struct inner, "Inner", inner_fields);
static const struct myelin_field outer_fields[] = {
    MYELIN_FIELD(struct outer, big), MYELIN_FIELD_STRUCT(struct outer, inner, &inner, 2),
    MYELIN_FIELD(struct outer, name), MYELIN_FIELD(struct outer, tail)};
static const struct myelin_struct outer = MYELIN_STRUCT_OF(struct outer, "Outer", outer_fields);

int main(void) {
  const struct myelin_payload payloads[] = {
      MYELIN_PAYLOAD(MYELIN_VALUE, MYELIN_TYPE(MYELIN_F64, 0)),
      MYELIN_PAYLOAD(MYELIN_VALUE, MYELIN_TYPE(MYELIN_U16, 2, 5)),
      MYELIN_PAYLOAD(MYELIN_VALUE, MYELIN_TYPE_STRUCT(&outer, 0)),
      MYELIN_PAYLOAD(MYELIN_SLICE, MYELIN_TYPE_STRUCT(&inner, 0)),
      MYELIN_PAYLOAD_STRUCTS(&inner, &outer),
  };
  uint64_t hash;
  OK(myelin_payload_hash(NULL, &hash));
  printf("%llu\n", (unsigned long long)hash);
  for (size_t each = 0; each < sizeof payloads / sizeof *payloads; each++) {
    OK(myelin_payload_hash(&payloads[each], &hash));
    printf("%llu\n", (unsigned long long)hash);
  }
  return 0;
}
