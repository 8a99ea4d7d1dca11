package render

import "flag"

var update = flag.Bool("update", false, "write the goldens anew")
