#!/usr/bin/env bash
# extending_test.sh PATCH SOURCE_FOLDER COMPILER_AND_FLAGS OBJECTS_AND_LIBRARIES FILTER MOST: tests that
# docs/extending.md is right. The patch adds files to one folder and touches at most MOST existing ones. The script
# applies it to a copy of the folders that it touches and compiles only the copy's changed sources. It links them with
# the objects of a test and the libraries of this build; the linker then does not take the archives' versions of the
# changed sources. Finally it runs the test's cases for the new row.
set -euo pipefail
change=$1 source_folder=$2 filter=$5 most=$6
read -ra compiler <<<"$3"
IFS='|' read -ra objects <<<"$4"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mapfile -t touched < <(sed -n 's|^+++ b/\([^\t]*\).*|\1|p' "$change")
known=() homes=()
for file in "${touched[@]}"; do
  if [[ -e "$source_folder/$file" ]]; then known+=("$file"); else homes+=("$(dirname "$file")"); fi
done
if ((${#known[@]} > most)) || (($(printf '%s\n' "${homes[@]}" | sort -u | wc -l) != 1)); then
  echo "extending_test: $change adds files to ${homes[*]} and touches ${known[*]}: at most one folder and $most files" >&2
  exit 1
fi
for folder in $(printf '%s\n' "${touched[@]}" | cut -d/ -f1-2 | sort -u); do
  mkdir -p "$work/$folder"
  cp -r "$source_folder/$folder/." "$work/$folder"
done
patch --quiet -p1 -d "$work" <"$change" || {
  echo "extending_test: $change does not apply any more: mend it, and with it docs/extending.md" >&2
  exit 1
}

# The code quoted on the page must be the code that is tested.
# shellcheck disable=SC2016 # the backquotes are the ones in the page
quoted=$(sed -n '/^```cpp$/,/^```$/p' "$source_folder/docs/extending.md" | grep -v '^```')
[[ -n "$quoted" ]]
while IFS= read -r line; do
  grep -qxF -e "+$line" "$source_folder"/tests/extending/*.patch || {
    echo "extending_test: docs/extending.md quotes what is in no patch: $line" >&2
    exit 1
  }
done <<<"$quoted"

made=()
for file in "${touched[@]}"; do
  if [[ "$file" == *.cpp ]]; then
    object=$work/$(basename "$file").o
    # The copy comes first, so that its headers are used.
    "${compiler[@]}" "-I$work/src" "-I$source_folder/src" "-I$source_folder" -c "$work/$file" -o "$object"
    made+=("$object")
    grep -rqF --include=CMakeLists.txt --include='*.cmake' "$(basename "$file")" "$work/$(cut -d/ -f1-2 <<<"$file")" || {
      echo "extending_test: $file is in no CMake file" >&2
      exit 1
    }
  fi
done
"${compiler[@]}" "${made[@]}" "${objects[@]}" -pthread -o "$work/test"
# The test executable is not the copy's, so a matching name alone must not count as a case.
"$work/test" --gtest_filter="$filter" >"$work/output" || {
  cat "$work/output"
  exit 1
}
tail -5 "$work/output"
grep -Eq '^\[==========\] [1-9][0-9]* tests? from' "$work/output"
