package testing

import (
	"fmt"
	"os"
	"sync"
)

// ProvetoPackage answers probes from two environment variables: PVT_SITE names
// the one that is on, PVT_LOG a file that receives what was seen.
type ProvetoPackage struct {
	path string
	on   int
}

var provetoLog struct {
	sync.Mutex
	file *os.File
	seen map[provetoFact]bool
}

// provetoFact is written once a process.
type provetoFact struct {
	kind, path string
	number     int
}

func provetoSeen(kind, path string, number int) {
	provetoLog.Lock()
	defer provetoLog.Unlock()
	fact := provetoFact{kind, path, number}
	if provetoLog.file == nil || provetoLog.seen[fact] {
		return
	}
	provetoLog.seen[fact] = true
	fmt.Fprintln(provetoLog.file, kind, path, number)
}

func ProvetoRegister(path string, symbols []string, sites int) *ProvetoPackage {
	p := &ProvetoPackage{path: path}
	if name := os.Getenv("PVT_LOG"); name != "" && provetoLog.file == nil {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		provetoLog.file, provetoLog.seen = f, make(map[provetoFact]bool)
	}
	var at string
	if _, err := fmt.Sscanf(os.Getenv("PVT_SITE"), "%s %d", &at, &p.on); err == nil && at != path {
		p.on = 0
	}
	return p
}

func (p *ProvetoPackage) Hit(symbol int) {
	if p != nil && provetoLog.file != nil {
		provetoSeen("hit", p.path, symbol)
	}
}

func (p *ProvetoPackage) On(site int) bool {
	if p == nil {
		return false
	}
	if provetoLog.file != nil {
		provetoSeen("site", p.path, site)
	}
	return p.on == site
}

func (p *ProvetoPackage) Watch() bool { return p != nil && provetoLog.file != nil }

func (p *ProvetoPackage) Values(site int, values ...any) {
	provetoSeen("value", p.path, site)
}

func (p *ProvetoPackage) Saw(site int, original, changed any) {
	provetoSeen("saw", p.path, site)
}
