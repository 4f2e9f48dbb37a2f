/** Earlier line: `GET /pxe/{mac}/plan`, for live systems that ask for it. */
import { decideRule } from './boot.ts'
import type { Machine } from './machine.ts'

export const PLAN_MODES = ['exit', 'interactive'] as const

/**
 * Never `flash`: this line names no disk, so such a live system asks a person. Its own live systems
 * read the kernel command line.
 */
export function decidePlan(machine: Machine) {
  const flat = PLANS[decideRule(machine)]
  return { ...flat, plan: flat }
}

const NO_DISK = 'This server names no disk: choose one.'

const HELD_BACK =
  'A flash of this machine never reported its end, and an older state of the server was restored since: its disk may be half written.'

const PLANS = {
  local: { mode: 'exit' },
  'no-image': { mode: 'exit' },
  disarmed: { mode: 'exit' },
  'held-back': { mode: 'interactive', reason: HELD_BACK },
  flash: { mode: 'interactive', reason: NO_DISK },
  wizard: { mode: 'interactive' },
} as const satisfies Readonly<
  Record<
    ReturnType<typeof decideRule>,
    { readonly mode: (typeof PLAN_MODES)[number]; readonly reason?: string }
  >
>
