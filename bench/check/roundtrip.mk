# What the Makefiles of the plain programs share: the round trip without the kit, for fidelity.py. NAME is the
# driver's. Builds into cargo's target folder, never into the source tree.
TARGET := $(or $(CARGO_TARGET_DIR),$(abspath $(dir $(lastword $(MAKEFILE_LIST)))../../target))
BUILD := $(TARGET)/check-$(NAME)
CFLAGS := -std=c11 -D_POSIX_C_SOURCE=200809L -O2 -Wall -Wextra -Werror
CXXFLAGS := -std=c++17 -O2 -Wall -Wextra -Werror

$(BUILD)/roundtrip: $(wildcard roundtrip.c roundtrip.cpp)
	mkdir -p $(BUILD)
	$(if $(filter %.cpp,$^),$(CXX) $(CXXFLAGS),$(CC) $(CFLAGS)) -o $@ $^ $(LDLIBS)

clean:
	rm -rf $(BUILD)

.PHONY: clean
