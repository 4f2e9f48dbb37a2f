/** People of a storm: they change machines by way of any server, and read by way of another one. */
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '#test/support/cluster/servers.ts'
import { macOf } from '../server/server-wire.ts'
import type { AskSite } from './cluster-ask.ts'
import { createExpectation, type Book } from './cluster-book.ts'

interface PersonOptions {
  readonly number: number
  readonly ask: AskSite
  readonly book: Book
  readonly random: () => number
  readonly leaving: AbortSignal
  readonly signal: AbortSignal
}

const MACHINES_EACH = 12
const PAUSE_MS = 400
/** Their machines are none of those that flash. */
const FIRST = 5_000_000
const GONE = 'removed'

export type StormPerson = ReturnType<typeof createPerson>

/** Somebody who labels and removes machines one after the other, and looks whether it is so. */
export function createPerson({ number, ask, book, random, leaving, signal }: PersonOptions) {
  const machines = Array.from({ length: MACHINES_EACH }, (_, at) => ({
    mac: macOf(FIRST + number * MACHINES_EACH + at),
    labelled: createExpectation<string>(GONE),
  }))
  let turn = 0

  async function change({ mac, labelled }: (typeof machines)[number]) {
    const isRemoval = random() < 0.15
    const label = isRemoval ? GONE : `turn-${(turn += 1)}`
    const init = isRemoval
      ? { method: 'DELETE' }
      : { method: 'PUT', body: JSON.stringify({ labels: [label] }) }
    labelled.try(label)
    const answer = await ask.once(`/machines/${mac}`, init, signal)
    if (answer === null) {
      book.count('changes of people in doubt')
      return
    }
    const isRight = answer.status < 300 || (isRemoval && answer.status === 404)
    if (!isRight) throw new Error(`${init.method} of ${mac}: ${answer.status} ${answer.text}`)
    labelled.acknowledge(label)
    book.count('changes of people acknowledged')
  }

  /** Resolves to its label; null: nobody answered. */
  async function read(mac: string): Promise<string | null> {
    const answer = await ask.once(`/machines/${mac}`, {}, signal)
    if (answer === null) return null
    if (answer.status === 404) return GONE
    const { labels = [] }: { readonly labels?: readonly string[] } = JSON.parse(answer.text)
    return labels[0] ?? ''
  }

  async function look(
    { mac, labelled }: (typeof machines)[number],
    when: 'right after' | 'at the end',
  ) {
    const found = await read(mac)
    if (found === null) return false
    book.count('answers compared')
    if (!labelled.allows(found)) {
      const kind = when === 'right after' ? 'stale' : 'lost'
      book.find(kind, `${mac} is ${found}, and may be ${labelled.possible().join(', ')}`)
    }
    return true
  }

  return {
    async live() {
      while (!leaving.aborted) {
        const machine = machines[Math.floor(random() * machines.length)]
        if (machine === undefined) return
        await change(machine)
        if (random() < 0.5) await look(machine, 'right after')
        await sleep(PAUSE_MS, undefined, { signal })
      }
    },
    /** Compares all of its machines, once nothing happens any more. */
    async check() {
      for (const machine of machines) await until(() => look(machine, 'at the end'), 60_000)
    },
  }
}
