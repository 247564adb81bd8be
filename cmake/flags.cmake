# Flags under which the core gives the same bits on every machine: no fused
# multiply-add, no reassociation. -fno-math-errno and -fno-trapping-math change
# no result; they let square roots and selections vectorise. -Wno-psabi: lanes cross
# only inlined calls.
include(CheckCXXCompilerFlag)

option(SF2EL_SANITIZE "Check addresses and undefined behaviour while it runs (make sanitize)" OFF)

if(NOT MSVC)
  set(SF2EL_DETERMINISTIC_FLAGS -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -Wno-psabi)
endif()

if(SF2EL_SANITIZE)
  list(REMOVE_ITEM SF2EL_DETERMINISTIC_FLAGS -O3)
  list(APPEND SF2EL_DETERMINISTIC_FLAGS -O1 -g1 -fno-omit-frame-pointer)
  add_compile_options(-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=undefined,float-cast-overflow)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=address,undefined)
endif()

function(sf2el_deterministic_flags target)
  target_compile_options(${target} PRIVATE ${SF2EL_DETERMINISTIC_FLAGS})
endfunction()

function(sf2el_add_wide_variant target source)
  check_cxx_compiler_flag(-mavx2 SF2EL_HAS_AVX2)
  if(SF2EL_HAS_AVX2 AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_sources(${target} PRIVATE ${source})
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-mavx2")
    target_compile_definitions(${target} PUBLIC SF2EL_WIDE_VARIANT)
  endif()
endfunction()
