package agent

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/openphone-host/openphone/plugins/codex/appserver"
	"github.com/openphone-host/openphone/protocol/codes"
)

// mcpServer is a configured server with names and descriptions only: no address, command, header or schema.
type mcpServer struct {
	Name           string    `json:"name"`
	Auth           string    `json:"auth"` // authenticated, required, unsupported, unknown
	ToolsAvailable bool      `json:"toolsAvailable"`
	Tools          []mcpTool `json:"tools"`
}

type mcpTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type nativeServer struct {
	Name       string                                            `json:"name"`
	Auth       appserver.String                                  `json:"authStatus"`
	ToolsError json.RawMessage                                   `json:"toolsError"`
	Tools      map[string]struct{ Description appserver.String } `json:"tools"`
}

// mcp lists the servers; too many of anything ends the list early rather than failing it.
func (p *profile) mcp(ctx context.Context, c profileCall) (any, error) {
	if err := c.decode(&struct{}{}); err != nil {
		return nil, err
	}
	list := []mcpServer{}
	cursors := map[string]bool{}
	cursor, tools, size := "", 0, 0
	for range maxServerPages {
		raw, err := c.client.MCPServers(ctx, "toolsAndAuthOnly", cursor, serverPage)
		if err != nil {
			return nil, err
		}
		var page struct {
			Data []nativeServer    `json:"data"`
			Next *appserver.String `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, codes.New(codes.ReplyInvalid).Because(err)
		}
		for _, n := range page.Data {
			s := shownServer(n, maxAllTools-tools)
			b, err := json.Marshal(s)
			if size += len(b) + 1; err != nil || len(list) == maxServers || size > maxServerBytes {
				return list, nil
			}
			tools += len(s.Tools)
			list = append(list, s)
		}
		if page.Next == nil || *page.Next == "" || cursors[string(*page.Next)] {
			return list, nil
		}
		cursor = string(*page.Next)
		cursors[cursor] = true
	}
	return list, nil
}

func shownServer(n nativeServer, room int) mcpServer {
	s := mcpServer{Name: cutUnits(n.Name, maxName), Auth: "unknown", ToolsAvailable: n.Tools != nil && !isSet(n.ToolsError), Tools: []mcpTool{}}
	switch n.Auth {
	case "bearerToken", "oAuth":
		s.Auth = "authenticated"
	case "notLoggedIn":
		s.Auth = "required"
	case "unsupported":
		s.Auth = "unsupported"
	}
	for _, name := range slices.Sorted(maps.Keys(n.Tools)) {
		if len(s.Tools) < min(maxServerTools, room) {
			s.Tools = append(s.Tools, mcpTool{Name: cutUnits(name, maxName), Description: cutUnits(string(n.Tools[name].Description), maxDescription)})
		}
	}
	return s
}

type pluginRow struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Enabled     bool   `json:"enabled"`
}

// plugins lists the runtime's own plugins that are installed for a project; they can only be looked at.
func (p *profile) plugins(ctx context.Context, c profileCall) (any, error) {
	dir, err := p.projectOf(ctx, c)
	if err != nil {
		return nil, err
	}
	raw, err := c.client.Plugins(ctx, dir)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Marketplaces []struct {
			Plugins []struct {
				ID        string `json:"id"`
				Name      string `json:"name"`
				Installed *bool  `json:"installed"`
				Enabled   bool   `json:"enabled"`
				Interface *struct {
					Name  appserver.String `json:"displayName"`
					Short appserver.String `json:"shortDescription"`
				} `json:"interface"`
			} `json:"plugins"`
		} `json:"marketplaces"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, codes.New(codes.ReplyInvalid).Because(err)
	}
	list := []pluginRow{}
	seen := map[string]bool{}
	for _, m := range answer.Marketplaces {
		for _, n := range m.Plugins {
			if n.ID == "" || seen[n.ID] || n.Installed != nil && !*n.Installed || len(list) == maxPlugins {
				continue
			}
			seen[n.ID] = true
			row := pluginRow{ID: cutUnits(n.ID, maxName), Name: cutUnits(n.Name, maxName), Enabled: n.Enabled}
			if n.Interface != nil {
				row.Description = cutUnits(string(n.Interface.Short), maxDescription)
				if n.Interface.Name != "" {
					row.Name = cutUnits(string(n.Interface.Name), maxName)
				}
			}
			if row.Name == "" {
				row.Name = row.ID
			}
			list = append(list, row)
		}
	}
	return list, nil
}
