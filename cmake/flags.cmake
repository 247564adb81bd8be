# Flags under which the core gives the same bits on every machine: no fused
# multiply-add, no reassociation. -fno-math-errno and -fno-trapping-math change
# no result; they let square roots and selections vectorise. -Wno-psabi: lanes cross
# only inlined calls.
include(CheckCXXCompilerFlag)

if(NOT MSVC)
  set(SF2EL_DETERMINISTIC_FLAGS -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -Wno-psabi)
endif()

function(sf2el_deterministic_flags target)
  target_compile_options(${target} PRIVATE ${SF2EL_DETERMINISTIC_FLAGS})
endfunction()

function(sf2el_add_wide_variant target source)
  check_cxx_compiler_flag(-mavx2 SF2EL_HAS_AVX2)
  if(SF2EL_HAS_AVX2 AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    target_sources(${target} PRIVATE ${source})
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-mavx2")
    target_compile_definitions(${target} PRIVATE SF2EL_WIDE_VARIANT)
  endif()
endfunction()
