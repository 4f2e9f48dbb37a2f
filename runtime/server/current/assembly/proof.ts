/** Current line: opens what waits for the first boot of systems that were flashed. */
import { askNeighbours, readHostKeys } from '#fleet/proof/witnesses.ts'
import { type ProofsDependencies, createProofs } from '#fleet/proof/proofs.ts'
import { decideAnswer } from '#fleet/proof/rules/proof.ts'
import { epochOf } from '#kit/foundation/instants.ts'
import { createShell, type Environment } from '#kit/host/shell.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import type { Clock } from '#server/app/clock.ts'
import type { LineConfig } from './configuration.ts'
import type { State } from './state.ts'

interface ProofServices {
  readonly config: LineConfig
  readonly state: State
  readonly env: Environment
  readonly clock: Clock
  /** What looks at machines from outside, instead of at their addresses. */
  readonly witnesses?: Pick<ProofsDependencies, 'findAnswers' | 'readKeys'>
}

/** An order that is older is one that this server finds when it starts: nobody knows what ran before it. */
const FRESH_MS = 5000

export function openProofs({ config, state, env, clock, witnesses }: ProofServices) {
  const { database, changes, machines } = state
  const shell = createShell({ env })
  const proofs = createProofs({
    database,
    changes,
    settings: () => config.current().proof,
    findCall: (mac) => machines.peek(mac)?.first_boot_taken_at ?? null,
    ...clock,
    async findAnswers(macs) {
      const watched = macs.flatMap((mac) => machines.peek(mac) ?? [])
      const neighbours = await askNeighbours(watched.map(({ last_seen_ip: ip }) => ip ?? ''))
      return new Map(
        watched.flatMap((machine) => {
          const answers = decideAnswer(machine, neighbours)
          return answers === null ? [] : [[machine.mac, answers] as const]
        }),
      )
    },
    async readKeys(mac) {
      const { port } = config.current().proof
      const host = machines.peek(mac)?.last_seen_ip ?? null
      return host === null || port === 0 ? null : await readHostKeys(shell, host, port)
    },
    ...witnesses,
  })
  changes.listen(
    (change) => {
      if (change.topic !== 'machine' || config.current().proof.port === 0) return
      const mac = parseMac(change.mac)
      const machine = mac.ok ? machines.peek(mac.value) : null
      if (machine === null) return
      const { started_at: order } = machine.cycle
      if (clock.now().getTime() - epochOf(order) < FRESH_MS) proofs.order(machine.mac, order)
    },
    ['machine'],
  )
  return proofs
}
