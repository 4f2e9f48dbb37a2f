/** Keeps how machines' power is reached in a file of its own: its passwords are in no export and no backup. */
import { openKeptFile } from '#kit/host/kept-file.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import {
  queueOf,
  type Credential,
  type LearnedBmc,
  changeEntry,
  EMPTY_BOOK,
  findCredential,
  listSharing,
  PowerBookSchema,
  type FoundCredential,
  type LabelCredential,
  type PowerBookContent,
  type PowerChange,
  type PowerEntry,
} from './rules/bmc.ts'

export type PowerBook = Awaited<ReturnType<typeof openPowerBook>>

/**
 * Answers come from memory; a change is on disk before it resolves. Rejects with a Fault if the
 * file cannot be read. `share` is awaited after each change and gives it to other servers.
 */
export async function openPowerBook(path: string, share?: () => Promise<void>) {
  const { current, change } = await openKeptFile<PowerBookContent>({
    path,
    schema: PowerBookSchema,
    empty: EMPTY_BOOK,
    named: ['the power settings of machines', 'BMCs'],
    share,
  })
  const find = (mac: Mac): PowerEntry | null => current().machines[mac] ?? null

  return {
    find,
    list: (): readonly (readonly [mac: string, entry: PowerEntry])[] =>
      Object.entries(current().machines),
    findCredential(mac: Mac, labels: readonly string[]): FoundCredential | null {
      const entry = find(mac)
      return entry === null ? null : findCredential(current(), entry, labels)
    },
    listSharing: (mac: Mac): readonly string[] => listSharing(current(), mac),
    save: (changes: ReadonlyMap<Mac, PowerChange>) =>
      change((before) => {
        const machines = { ...before.machines }
        for (const [mac, each] of changes) machines[mac] = changeEntry(machines[mac] ?? null, each)
        return { ...before, machines }
      }),
    async remove(mac: Mac): Promise<boolean> {
      if (find(mac) === null) return false
      await change((before) => {
        const { [mac]: _, ...machines } = before.machines
        return { ...before, machines }
      })
      return true
    },
    /** If the machine still has the BMC of that queue (`queueOf`). */
    learn: (mac: Mac, learned: Partial<LearnedBmc>, queue: string) =>
      change((before) => {
        const entry = before.machines[mac]
        if (entry === undefined || queueOf(entry.bmc) !== queue) return before
        const next = { ...entry, learned: { ...entry.learned, ...learned } }
        return { ...before, machines: { ...before.machines, [mac]: next } }
      }),
    /** Without passwords; with the addresses that those of labels may be sent to. */
    listUsers() {
      const labels = Object.entries(current().labels)
      return {
        all: current().all?.user ?? null,
        labels: Object.fromEntries(labels.map(([label, { user }]) => [label, user])),
        addresses: Object.fromEntries(labels.map(([label, { addresses }]) => [label, addresses])),
      }
    },
    /** Labels with a password: giving one to a machine decides what is sent to its BMC. */
    listLabels: (): readonly string[] => Object.keys(current().labels),
    findForLabel: (label: string): LabelCredential | null =>
      Object.hasOwn(current().labels, label) ? (current().labels[label] ?? null) : null,
    /** `credential` null removes it. */
    saveForLabel: (label: string, credential: LabelCredential | null) =>
      change((before) => {
        const { [label]: _, ...labels } = before.labels
        return {
          ...before,
          labels: credential === null ? labels : { ...labels, [label]: credential },
        }
      }),
    saveForAll: (all: Credential | null) => change((before) => ({ ...before, all })),
  }
}
