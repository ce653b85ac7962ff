// Command urls reads the lines of fixtures/urls/cases.jsonl and prints them with what net/url makes of their texts:
// `url` by Parse, `request` by ParseRequestURI; the parts that are there, or the problem.
package main

import (
	"bufio"
	"encoding/json"
	"net/url"
	"os"
)

type parts struct {
	Scheme   string     `json:"scheme,omitempty"`
	User     bool       `json:"user,omitempty"`
	Host     string     `json:"host,omitempty"`
	Hostname string     `json:"hostname,omitempty"`
	Port     string     `json:"port,omitempty"`
	Path     string     `json:"path,omitempty"`
	Query    url.Values `json:"query,omitempty"`
	Fragment string     `json:"fragment,omitempty"`
}

func read(parse func(string) (*url.URL, error), text string) any {
	found, err := parse(text)
	if err != nil {
		return err.Error()
	}
	return parts{found.Scheme, found.User != nil, found.Host, found.Hostname(), found.Port(), found.EscapedPath(), found.Query(), found.Fragment}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		var line struct {
			Text    string `json:"text"`
			URL     any    `json:"url"`
			Request any    `json:"request"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			panic(err)
		}
		line.URL, line.Request = read(url.Parse, line.Text), read(url.ParseRequestURI, line.Text)
		if err := out.Encode(line); err != nil {
			panic(err)
		}
	}
}
