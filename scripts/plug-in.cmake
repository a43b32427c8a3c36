# For scripts/plug-in, which includes it by CMAKE_PROJECT_INCLUDE: each link writes a temporary file, and then renames it.
# A program that starts during a link finds either the old file or the new one, whole.
foreach(language IN ITEMS C CXX)
  foreach(rule IN ITEMS CMAKE_${language}_CREATE_SHARED_LIBRARY CMAKE_${language}_LINK_EXECUTABLE)
    if(${rule} AND NOT "${${rule}}" MATCHES "<TARGET>\\.new")
      string(REPLACE "-o <TARGET>" "-o <TARGET>.new" ${rule} "${${rule}}")
      list(APPEND ${rule} "mv -f <TARGET>.new <TARGET>")
    endif()
  endforeach()
endforeach()
