#![cfg_attr(feature = "libfuzzer", no_main)]

fuzz::program!(key);
