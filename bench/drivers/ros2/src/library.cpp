/* Loads ROS 2.
 *
 * librcl of an installation calls its middleware through librmw_implementation, which loads the one
 * of RMW_IMPLEMENTATION. librcl of the wheels is linked with rmw_fastrtps_cpp. Both find the
 * functions of a middleware that was loaded globally before them, so that is what this file does.
 */
#include "library.hpp"

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

#include "link.hpp"

namespace {

using myelin::Failure;

struct Middleware {
  const char *name;
  const char *library;
  const char *missing;
};

constexpr Middleware FASTRTPS = {
    "rmw_fastrtps_cpp", "librmw_fastrtps_cpp.so",
    "no librmw_fastrtps_cpp.so in the ROS 2 that this was built with: apt-get install "
    "ros-$ROS_DISTRO-rmw-fastrtps-cpp"};
constexpr Middleware MYELIN = {
    "rmw_myelin", "librmw_myelin.so",
    "no librmw_myelin.so: scripts/rmw builds it; for one in another place, set MYELIN_RMW "
    "to its path"};

/* The middleware of a system: the names `ros2.rcl-myelin` and `ros2.rclcpp-myelin` contain it. */
const Middleware &middleware_of(std::string_view system)
{
  return system.find("-myelin") == std::string_view::npos ? FASTRTPS : MYELIN;
}

std::vector<std::string> split(std::string_view list)
{
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t end = list.find(':');
    if (const std::string_view part = list.substr(0, end); !part.empty())
      parts.emplace_back(part);
    if (end == std::string_view::npos)
      return parts;
    list.remove_prefix(end + 1);
  }
}

/* The folder of this program. */
std::string own_folder()
{
  std::array<char, 4096> path;
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  const std::string_view text(path.data(), length > 0 ? length : 0);
  return std::string(text.substr(0, text.rfind('/')));
}

/* The path of a middleware's library; empty if there is none. */
std::string path_of(const Middleware &middleware)
{
  const char *path = std::getenv("MYELIN_RMW");
  if (&middleware == &MYELIN && path != nullptr && *path != 0)
    return access(path, R_OK) == 0 ? path : "";
  const char *searched = std::getenv("LD_LIBRARY_PATH");
  std::vector<std::string> folders = split(searched == nullptr ? "" : searched);
  for (std::string &folder : split(ROS2_LIBRARIES))
    folders.push_back(std::move(folder));
  folders.push_back(own_folder());
  for (const std::string &folder : folders) {
    const std::string path = folder + '/' + middleware.library;
    if (access(path.c_str(), R_OK) == 0)
      return path;
  }
  return "";
}

/* `libpython3.11.so.1.0` if the libraries are those of wheels, which need it; empty otherwise. */
std::string python()
{
  const std::string_view folders = ROS2_LIBRARIES;
  const std::size_t start = folders.find("/python3.");
  if (start == std::string_view::npos)
    return "";
  const std::string_view name = folders.substr(start + 1);
  return "lib" + std::string(name.substr(0, name.find('/'))) + ".so.1.0";
}

void load(const std::string &name, const char *remedy)
{
  if (dlopen(name.c_str(), RTLD_LAZY | RTLD_GLOBAL) == nullptr)
    throw Failure(dlerror(), remedy);
}

template <typename Function> void find(Function &function, const char *name)
{
  void *symbol = dlsym(RTLD_DEFAULT, name);
  if (symbol == nullptr)
    throw Failure(std::string("it has no ") + name, "use Humble or later");
  function = reinterpret_cast<Function>(symbol);
}

const rosidl_message_type_support_t *type(const char *name)
{
  const rosidl_message_type_support_t *(*get)() = nullptr;
  find(get, name);
  return get();
}

constexpr const char *INSTALL = "ROS2_PREFIX named another installation when this was built";

} // namespace

extern "C" void myelin_ros2_probe(myelin_bench_system *system)
{
  const Middleware &middleware = middleware_of(system->name);
  if (system->missing == nullptr && path_of(middleware).empty())
    system->missing = middleware.missing;
}

void myelin::use_middleware(const char *system)
{
  const Middleware &middleware = middleware_of(system);
  const std::string path = path_of(middleware);
  if (path.empty())
    throw Failure(middleware.missing);
  setenv("RMW_IMPLEMENTATION", middleware.name, 1);
  if (const std::string library = python(); !library.empty())
    load(library, "apt-get install libpython3-dev, of the version of the wheels");
  load(path, INSTALL);
}

void myelin::check_middleware(const char *system)
{
  decltype(&rmw_get_implementation_identifier) identifier = nullptr;
  find(identifier, "rmw_get_implementation_identifier");
  const std::string found = identifier();
  if (const char *wanted = middleware_of(system).name; found != wanted)
    throw Failure("the middleware is " + found + ", not " + wanted);
}

myelin::Library::Library(const char *system)
{
  use_middleware(system);
  for (const char *name : {"librcl.so", "libstd_msgs__rosidl_typesupport_cpp.so",
                           "libsensor_msgs__rosidl_typesupport_cpp.so"})
    load(name, INSTALL);
  check_middleware(system);
#define MYELIN_ROS2_FIND(name) find(name, #name);
  MYELIN_ROS2_FUNCTIONS(MYELIN_ROS2_FIND)
#undef MYELIN_ROS2_FIND
  octets = type("rosidl_typesupport_cpp__get_message_type_support_handle__std_msgs__msg__"
                "UInt8MultiArray");
  image = type("rosidl_typesupport_cpp__get_message_type_support_handle__sensor_msgs__msg__Image");
}

void myelin::Library::check(rcl_ret_t code, const char *what) const
{
  if (code == RCL_RET_OK)
    return;
  const std::string text = rcutils_get_error_string().str;
  rcutils_reset_error();
  throw Failure(std::string(what) + ": " + text, "this run's log may say more");
}
