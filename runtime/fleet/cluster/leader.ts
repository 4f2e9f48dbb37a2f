/** What the server does that holds the lease: it appends groups, and renews. */
import { randomUUID } from 'node:crypto'
import { settle } from '#kit/host/watch.ts'
import type { SeenMachine } from '#fleet/state/commits.ts'
import { createHold, type HoldDependencies } from './hold.ts'
import type { Position } from './rules/lease.ts'
import {
  ALL_KEYS,
  renderGroup,
  renderKeys,
  SCHEMA_NAME,
  type RowCells,
  type SharedTable,
  type TableChange,
} from './rules/shared-tables.ts'
import { FENCE, HAND_OVER, PRUNE, RENEW, RENEW_SEEN } from './tables.ts'

export type Leader = ReturnType<typeof createLeader>

const RENEW_MS = 1000
const PRUNE_MS = 60_000

/**
 * Each answer comes from a transaction that began after the call and found the lease to be ours.
 * Calls wait for a database that is away; they reject with a Fault `no-leader` once another server
 * leads, `input-invalid` if these rows alone cannot be stored. `append` also rejects with
 * `no-leader` if the rows took too long; they are not stored then.
 */
export function createLeader(dependencies: HoldDependencies) {
  const hold = createHold(dependencies)
  const { trouble, ended, giveUp, survivesHost } = hold
  const renewals = createRenewals(hold)
  let isLeaving = false

  return {
    trouble,
    ended,
    giveUp,
    survivesHost,
    append(changes: readonly TableChange[]): Promise<Position> {
      const change = randomUUID()
      const keys = renderKeys(changes)
      return hold.insist(
        async ({ session, term, position }) => {
          const fence = { text: FENCE, values: [term, position.seq, change, keys] }
          const { text, values } = renderGroup(fence, changes)
          return (await session.repeat(text, values)).length === 1
        },
        change,
        ['rows', 'late'],
      )
    },
    /** In one transaction. */
    replaceAll(
      tables: readonly SharedTable[],
      read: (table: SharedTable) => Iterable<readonly RowCells[]>,
    ): Promise<Position> {
      const change = randomUUID()
      return hold.insist(({ session, term, position }) => {
        const values = [term, position.seq, change, ALL_KEYS]
        return session.transact('', async () => {
          const found = await session.query(`WITH ${FENCE} SELECT * FROM fence`, values)
          if (found.length !== 1) return false
          for (const table of tables) {
            await session.query(`DELETE FROM ${SCHEMA_NAME}.${table.name}`)
            for (const rows of read(table)) {
              const part = renderGroup(WITHOUT_FENCE, [{ table, rows, removed: [] }])
              await session.query(part.text, part.values)
            }
          }
          return true
        })
      }, change)
    },
    /** In a transaction that began after this call. */
    async confirm(): Promise<void> {
      await hold.insist(
        async ({ session, term }) => (await session.repeat(RENEW, [term])).length === 1,
        null,
      )
    },
    isSure: () => !isLeaving && hold.isSure(),
    /** Stored with the next renewal, within a second. */
    see: renewals.see,
    /** Another server leads at once. A database that is away is not waited for. */
    async stop(): Promise<void> {
      isLeaving = true
      renewals.end()
      if (ended() === null && trouble() === null) await settle(handOver(), STOP_MS)
      await settle(hold.close(), STOP_MS)
    },
  }

  async function handOver(): Promise<void> {
    await renewals.renew()
    await hold.insist(async ({ session, term }) => {
      await session.query(HAND_OVER, [term])
      return true
    }, null)
  }
}

const STOP_MS = 2000

/** For a transaction that has already found the lease to be ours. */
const WITHOUT_FENCE = { text: 'fence AS (SELECT 1 AS one)', values: [] }

function createRenewals(hold: ReturnType<typeof createHold>) {
  const seen = new Map<string, SeenMachine>()
  let isRenewing = false

  async function renew(): Promise<void> {
    const batch = [...seen.values()]
    const columns = [
      batch.map(({ mac }) => mac),
      batch.map(({ at }) => at),
      batch.map(({ ip }) => ip),
    ]
    await hold.insist(
      async ({ session, term }) =>
        (await session.repeat(RENEW_SEEN, [term, ...columns])).length === 1,
      null,
    )
    for (const each of batch) if (seen.get(each.mac) === each) seen.delete(each.mac)
    await hold.renewHint()
  }

  const timers = [
    setInterval(() => {
      if (isRenewing || hold.ended() !== null) return
      isRenewing = true
      // Whoever waits for a change hears of a failure.
      renew()
        .catch(() => undefined)
        .finally(() => {
          isRenewing = false
        })
    }, RENEW_MS).unref(),
    setInterval(() => {
      if (hold.ended() !== null || hold.trouble() !== null) return
      // Best effort: a longer log does no harm, and the next minute tries again.
      const prune = hold.insist(async ({ session, term }) => {
        await session.query(PRUNE, [term])
        return (await session.repeat(RENEW, [term])).length === 1
      }, null)
      prune.catch(() => undefined)
    }, PRUNE_MS).unref(),
  ]

  return {
    renew,
    see(batch: readonly SeenMachine[]): void {
      for (const each of batch) seen.set(each.mac, each)
    },
    end() {
      for (const timer of timers) clearInterval(timer)
    },
  }
}
