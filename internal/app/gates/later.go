package gates

import "context"

func (m *measurement) command(ctx context.Context) (found, error)      { panic("x") }
func (m *measurement) requirements(ctx context.Context) (found, error) { panic("x") }
func (m *measurement) changed(ctx context.Context) (found, error)      { panic("x") }
func (m *measurement) merge(ctx context.Context) (found, error)        { panic("x") }
