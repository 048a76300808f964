# cmake -DOUTPUT=file.cpp -DFOLDER=db/migrations -P embed.cmake
#
# Writes the numbered SQL files into one C++ source, in order. The numbers must run from 1 without
# gaps: a database's user_version is the number of the last one applied.
file(GLOB files RELATIVE ${FOLDER} ${FOLDER}/[0-9][0-9][0-9][0-9]_*.sql)
list(SORT files)
set(text "// Made from db/migrations by embed.cmake.\n#include \"migrations.hpp\"\n\n")
string(APPEND text "namespace qualify::journal {\n\nconst std::vector<Migration>& migrations() {\n")
string(APPEND text "  static const std::vector<Migration> all = {\n")
set(expected 0)
foreach(file IN LISTS files)
  math(EXPR expected "${expected} + 1")
  string(SUBSTRING ${file} 0 4 number)
  string(REGEX REPLACE "^0+" "" number ${number})
  if(NOT number EQUAL expected)
    message(FATAL_ERROR "db/migrations: ${file} should be number ${expected}")
  endif()
  file(READ ${FOLDER}/${file} sql)
  string(APPEND text "      {${number}, \"${file}\", R\"sql(${sql})sql\"},\n")
endforeach()
string(APPEND text "  };\n  return all;\n}\n\n}  // namespace qualify::journal\n")
file(WRITE ${OUTPUT} "${text}")
