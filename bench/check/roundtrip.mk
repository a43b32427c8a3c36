# What the Makefiles of the plain programs share: the round trip without the kit, for fidelity.py. NAME is the
# driver's. Builds into cargo's target folder, never into the source tree. FILES are the sources; who adds
# to them has the program depend on it.
space := $() $()
# Make splits names at spaces; escaped ones it keeps, and the shell after it.
TARGET := $(subst $(space),\ ,$(or $(CARGO_TARGET_DIR),$(shell cd ../../../.. && pwd)/target))
BUILD := $(TARGET)/check-$(NAME)
CFLAGS := -std=c11 -D_POSIX_C_SOURCE=200809L -O2 -Wall -Wextra -Werror
CXXFLAGS := -std=c++17 -O2 -Wall -Wextra -Werror
FILES := $(wildcard roundtrip.c roundtrip.cpp)

$(BUILD)/roundtrip: $(FILES)
	mkdir -p $(BUILD)
	$(if $(filter %.cpp,$(FILES)),$(CXX) $(CXXFLAGS),$(CC) $(CFLAGS)) -o "$@" $(FILES) $(LDLIBS)

clean:
	rm -rf $(BUILD)

.PHONY: clean
