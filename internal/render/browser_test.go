package render

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/proveto/proveto/internal/view"
)

// browser starts a real Chromium, or skips with the reason where there is none
// and nobody promised one.
func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") == "" {
			t.Skip("chromium is not installed")
		}
		t.Fatal("chromium is not installed, and CI must have it")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU)
	alloc, stop := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	return ctx
}

// facts are asked for by the debugging protocol: the page's own scripts stay off.
const facts = `({
	headline: document.querySelector("h1").textContent,
	says: document.querySelector(".says").textContent,
	sections: document.querySelectorAll("h2").length,
	unlabelled: document.querySelectorAll("table:not(:has(caption)), thead th:not([scope])").length,
	too_wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
	display: getComputedStyle(document.querySelector(".strip")).display,
	small_targets: [...document.querySelectorAll("summary, .toc a, .counts a")].filter(e => e.getClientRects().length && e.getBoundingClientRect().height < 24).length,
})`

type pageFacts struct {
	Headline     string `json:"headline"`
	Says         string `json:"says"`
	Sections     int    `json:"sections"`
	Unlabelled   int    `json:"unlabelled"`
	TooWide      int    `json:"too_wide"` // pixels
	Display      string `json:"display"`
	SmallTargets int    `json:"small_targets"`
}

func TestReportWorksFromADiskWithoutScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser")
	}
	t.Parallel()
	ctx := browser(t)
	dir := t.TempDir()
	var mu sync.Mutex
	var requests, complaints []string
	err := chromedp.Listen(ctx, func(ev any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := ev.(type) {
		case *network.EventRequestWillBeSent:
			requests = append(requests, e.Request.URL)
		case *log.EventEntryAdded:
			complaints = append(complaints, e.Entry.Text)
		case *runtime.EventExceptionThrown:
			complaints = append(complaints, e.ExceptionDetails.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
		t.Fatal(err)
	}
	s := fixture()
	visits := []struct {
		name  string
		start view.Start
		width int64
	}{{"narrow", s, 420}, {"empty", view.Start{Says: view.Says}, 1280}, {"wide", s, 1280}}
	for _, v := range visits {
		file := filepath.Join(dir, v.name+".html")
		if err := os.WriteFile(file, []byte(reportOf(t, v.start)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := chromedp.Do(ctx, chromedp.EmulateViewport(v.width, 900), chromedp.Navigate("file://"+file)); err != nil {
			t.Fatalf("%s: %v", v.name, err)
		}
		got, err := chromedp.Run(ctx, chromedp.Evaluate[pageFacts](facts))
		if err != nil {
			t.Fatalf("%s: %v", v.name, err)
		}
		want := pageFacts{Headline: v.start.Headline(), Says: view.Says, Sections: 7, Display: "flex"}
		cut, err := chromedp.Run(ctx, chromedp.Evaluate[string](`[...document.querySelectorAll(".scroll")].filter(e => e.clientWidth > 0 && e.scrollWidth > e.clientWidth).map(e => e.textContent.slice(0, 60)).join("; ")`))
		if err != nil || cut != "" {
			t.Errorf("%s: tables are cut off at the edge: %s, %v", v.name, cut, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", v.name, diff)
		}
	}
	target := symbolAnchor(s.Symbols[2].ID)
	if err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS("#"+target+" > summary"))); err != nil {
		t.Fatal(err)
	}
	open, err := chromedp.Run(ctx, chromedp.Evaluate[bool](fmt.Sprintf(`document.getElementById(%q).open`, target)))
	if err != nil || !open {
		t.Errorf("a behaviour does not open without scripts: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, r := range requests {
		if !strings.HasPrefix(r, "file://"+dir) {
			t.Errorf("the report asked for %s", r)
		}
	}
	if len(requests) != len(visits) || len(complaints) > 0 {
		t.Errorf("%d requests for %d visits; complaints: %v", len(requests), len(visits), complaints)
	}
}
