# What Debian alone requires in every package: /usr/share/doc/NAME with its
# copyright and its list of changes. Run by cpack between installing and packing.
find_program(gzip gzip REQUIRED)
foreach(component ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${component} upper)
  set(name ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(folder ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share/doc/${name})
  file(COPY ${CPACK_ROTRNN_SOURCE}/cmake/debian/copyright DESTINATION ${folder}
       FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(WRITE ${folder}/changelog "rotrnn (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * See CHANGELOG.md of the package rotrnn.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")
  execute_process(COMMAND ${gzip} -9nf ${folder}/changelog COMMAND_ERROR_IS_FATAL ANY)
  file(CHMOD ${folder}/changelog.gz
       FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  file(REMOVE ${folder}/LICENSE)  # it is in copyright
  file(GLOB pages ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share/man/man1/*.1)
  foreach(page ${pages})
    execute_process(COMMAND ${gzip} -9nf ${page} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
endforeach()
