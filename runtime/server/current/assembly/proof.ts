/** Current line: opens what waits for the first boot of systems that were flashed. */
import { askNeighbours } from '../../../fleet/proof/neighbours.ts'
import { createProofs } from '../../../fleet/proof/proofs.ts'
import { decideAnswer } from '../../../fleet/proof/rules/neighbour.ts'
import type { LineConfig } from './configuration.ts'
import type { State } from './state.ts'

interface ProofServices {
  readonly config: LineConfig
  readonly state: State
  now(): Date
}

export function openProofs({ config, state, now }: ProofServices) {
  const { database, changes, machines } = state
  return createProofs({
    database,
    changes,
    settings: () => config.current().proof,
    findCall: (mac) => machines.peek(mac)?.first_boot_taken_at ?? null,
    now,
    elapsed: () => performance.now(),
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
  })
}
