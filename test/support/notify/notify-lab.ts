/** A server of the current line whose notifications may go to this host, and forms as an administrator sends them. */
import * as assert from 'uvu/assert'
import { SYSTEM, type JournalEntry } from '#fleet/state/journal.ts'
import { asForm, createCurrentServer, type CurrentServer } from '../people/current-server.ts'

export const SIGNING_KEY = Buffer.alloc(32, 7).toString('base64')

const LOOPBACK = { FLASHER_NOTIFY_NETWORKS: '127.0.0.0/8' }

export async function createNotifyLab(env: Readonly<Record<string, string>> = {}) {
  const server = await createCurrentServer({ ...LOOPBACK, ...env })
  const ask = await server.operator()
  return {
    server,
    ask,
    /** Adds a receiver. Resolves to its page. */
    async add(kind: string, fields: Readonly<Record<string, string>>): Promise<string> {
      const path = `/ui/notifications/add/${kind}`
      const added = await ask(path, asForm({ name: kind, ...fields }))
      const page = added.headers.get('location') ?? ''
      assert.match(page, /\?done=added$/)
      return page.replace(/\?.*$/, '')
    },
    /** Gives a receiver a rule in the place of the one that it began with. */
    async setRule(page: string, fields: Readonly<Record<string, string>>): Promise<void> {
      const text = await (await ask(page)).text()
      const [first = ''] = text.match(/\/rules\/[0-9a-f]{8}(?=")/) ?? []
      const rule = { events: 'flash-failed', search: '', person: '', ...fields }
      const saved = await ask(`${page}${first}`, asForm(rule))
      assert.match(saved.headers.get('location') ?? '', 'done=saved')
    },
    /** Sends what was collected before its time: a receiver that is paused has heard of what was before. */
    async flush(page: string): Promise<void> {
      await ask(`${page}/pause`, { method: 'POST' })
      await ask(`${page}/resume`, { method: 'POST' })
    },
    textOf: async (page: string) => await (await ask(page)).text(),
    fail: (mac: string, more: Partial<JournalEntry> = {}) => failFlash(server, mac, more),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

export const failFlash = (
  { state }: CurrentServer,
  mac: string,
  more: Partial<JournalEntry> = {},
) =>
  state.journal.record({
    kind: 'machine.flash_failed',
    subject_kind: 'machine',
    subject_id: mac,
    actor: SYSTEM.actor,
    source_ip: null,
    summary: `${mac} reported that its flash failed: no space`,
    details: null,
    ...more,
  })
