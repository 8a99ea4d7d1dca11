// Package render lays views out: terminal text, JSON, Markdown, the behaviour
// report as one HTML file, and the mutation testing report of the Stryker
// family.
//
// A renderer decides nothing: no verdict, count or order is made here, and the
// mapping to foreign vocabularies (Killed, NoCoverage) is the only wording of
// its own. Every string of a view is foreign text: control and bidirectional
// characters are shown as visible escapes in every form, and each form escapes
// its own markup on top.
//
// Nothing here stores, starts a process or asks the terminal; [DetectStyle]
// reads an environment that it is given. The same view gives the same bytes.
package render
