/** The receivers of notifications: kept with how far each has followed the events, what opens them in a file of its own, and changes that are on record. */
import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { openKeptFile } from '#kit/host/kept-file.ts'
import type { Database } from '#fleet/state/database.ts'
import { keepRead } from '#fleet/state/kept-rows.ts'
import type { JournalEntry, Requester } from '#fleet/state/journal.ts'
import { readNumber, readText, type Row, type Sql } from '#fleet/state/sqlite.ts'
import {
  describeRule,
  MAX_RECEIVERS,
  MAX_RULES,
  nameTarget,
  type NotifyRule,
  type Receiver,
  type ReceiverRecord,
  ReceiverRecordSchema,
  type ReceiverTarget,
  SECRET_SHAPES,
} from './rules/channel.ts'

export type Receivers = ReturnType<typeof createReceivers>

type ReceiverRefusal = 'name-taken' | 'too-many' | 'unknown'

/** Lookups come from memory; a change is on disk before it resolves. */
export function createReceivers(database: Database) {
  const { current: list, write: change } = keepRead(database, readAll)

  return {
    /** Lists them by name. */
    list,
    find: (id: string): Receiver | null => list().find((one) => one.id === id) ?? null,
    /** It hears of what happens from here on. */
    add: (record: ReceiverRecord): Promise<Result<Receiver, ReceiverRefusal>> =>
      change((sql) => {
        const all = readAll(sql)
        if (all.some(({ name }) => name === record.name)) return refuse('name-taken')
        if (all.length >= MAX_RECEIVERS) return refuse('too-many')
        const id = randomBytes(6).toString('hex')
        sql.run(ADD, id, JSON.stringify(record))
        return accept({ id, ...record })
      }),
    /** Replaces what is stored by what `edit` makes of it at that moment. */
    update: (
      id: string,
      edit: (before: ReceiverRecord) => ReceiverRecord,
    ): Promise<Result<Receiver, ReceiverRefusal>> =>
      change((sql) => {
        const all = readAll(sql)
        const found = all.find((one) => one.id === id)
        if (found === undefined) return refuse('unknown')
        const { id: _, ...before } = found
        const record = edit(before)
        const isTaken = all.some((one) => one.id !== id && one.name === record.name)
        if (isTaken) return refuse('name-taken')
        sql.run('UPDATE notify_receivers SET record = ? WHERE id = ?', JSON.stringify(record), id)
        // Who has not listened hears nothing of what happened meanwhile.
        if (before.paused && !record.paused) sql.run(CATCH_UP, id)
        return accept({ id, ...record })
      }),
    /** Removes it with its messages. Resolves to what it was; null: there was none. */
    async remove(id: string): Promise<Receiver | null> {
      const receiver = list().find((one) => one.id === id) ?? null
      const isGone = await change((sql) => {
        sql.run('DELETE FROM notify_messages WHERE receiver = ?', id)
        return sql.run('DELETE FROM notify_receivers WHERE id = ?', id) > 0
      })
      return isGone ? receiver : null
    },
    /** The number of the last event that was put into a message, or passed by; null: no such receiver. */
    placeOf(id: string): number | null {
      const row = database.sql.get('SELECT place FROM notify_receivers WHERE id = ?', id)
      return row === null ? null : readNumber(row, 'place')
    },
    /** Moves it as a part of the caller's `write`. False: the receiver is gone. */
    moveTo: (sql: Sql, id: string, place: number): boolean =>
      sql.run('UPDATE notify_receivers SET place = ? WHERE id = ?', place, id) > 0,
  }
}

const NEWEST = '(SELECT coalesce(max(id), 0) FROM events)'
const ADD = `INSERT INTO notify_receivers (id, record, place) VALUES (?, ?, ${NEWEST})`
const CATCH_UP = `UPDATE notify_receivers SET place = ${NEWEST} WHERE id = ?`

/** Nothing for a row that cannot be read: nothing is sent to it. */
const readAll = (sql: Sql): readonly Receiver[] =>
  sql
    .all('SELECT id, record FROM notify_receivers')
    .flatMap(readRow)
    .toSorted((a, b) => a.name.localeCompare(b.name))

function readRow(row: Row): readonly Receiver[] {
  const stored = ReceiverRecordSchema.safeParse(parseJson(readText(row, 'record')))
  return stored.success ? [{ id: readText(row, 'id'), ...stored.data }] : []
}

export type ReceiverSecrets = Awaited<ReturnType<typeof openReceiverSecrets>>

/** `share` is awaited after a change, for whoever else must have it. Rejects where the file cannot be read. */
export async function openReceiverSecrets(path: string, share?: () => Promise<void>) {
  const { current, change } = await openKeptFile<Readonly<Record<string, string>>>({
    path,
    schema: z.record(z.string(), z.string()),
    empty: {},
    named: ['the secrets of notifications', 'secrets'],
    share,
  })
  return {
    find: (id: string): string | null =>
      Object.hasOwn(current(), id) ? (current()[id] ?? null) : null,
    save: (id: string, secret: string): Promise<void> =>
      change((before) => ({ ...before, [id]: secret })),
    async remove(id: string): Promise<void> {
      if (!Object.hasOwn(current(), id)) return
      await change((before) =>
        Object.fromEntries(Object.entries(before).filter(([each]) => each !== id)),
      )
    },
  }
}

export type EditRefusal = ReceiverRefusal | 'secret-missing' | 'secret-shape' | 'too-many-rules'

interface EditsDependencies {
  readonly receivers: Receivers
  readonly secrets: ReceiverSecrets
  /** What sends: it takes what has happened so far by the former rules. */
  readonly sender: { catchUp(receiver: Receiver): Promise<void> }
  record(entry: JournalEntry): Promise<void>
  now(): Date
}

export interface GivenReceiver {
  readonly name: string
  readonly target: ReceiverTarget
  /** Empty: the one that is kept stays. */
  readonly secret: string
}

/** What somebody wants to hear of who has not said it yet. */
const FIRST_RULE: Omit<NotifyRule, 'id'> = {
  events: ['needs-attention', 'batch-ended'],
  search: '',
  person: '',
}

/** Events name the receiver and where it is, and never what opens it. */
export function createReceiverEdits({
  receivers,
  secrets,
  sender,
  record,
  now,
}: EditsDependencies) {
  const note = createNote(record)
  /** What happened before goes out by the former rules. */
  async function change(
    id: string,
    edit: (before: ReceiverRecord) => ReceiverRecord,
  ): Promise<Result<Receiver, EditRefusal>> {
    const before = receivers.find(id)
    if (before === null) return refuse('unknown')
    if (!before.paused) await sender.catchUp(before)
    return await receivers.update(id, edit)
  }

  async function setRules(
    id: string,
    edit: (rules: readonly NotifyRule[]) => readonly NotifyRule[],
    by: Requester,
  ): Promise<Result<Receiver, EditRefusal>> {
    const before = receivers.find(id)?.rules ?? []
    if (edit(before).length > MAX_RULES) return refuse('too-many-rules')
    const changed = await change(id, (one) => ({ ...one, rules: [...edit(one.rules)] }))
    if (!changed.ok) return changed
    const [former, present] = [before, changed.value.rules].map((each) => each.map(describeRule))
    const changes = { rules: { before: former, after: present } }
    await note('changed', by, changed.value, ['has new rules', { changes }])
    return changed
  }

  return {
    async add(given: GivenReceiver, by: Requester): Promise<Result<Receiver, EditRefusal>> {
      const why = checkSecret(given, false)
      if (why !== null) return refuse(why)
      const { name, target, secret } = given
      const rules = [{ id: makeRuleId(), ...FIRST_RULE }]
      const created_at = now().toISOString()
      const added = await receivers.add({ name, target, rules, paused: false, created_at })
      if (!added.ok) return added
      if (secret !== '') await secrets.save(added.value.id, secret)
      await note('added', by, added.value, [`was added: ${nameTarget(target)}`, null])
      return added
    },
    edit: createEdit({ receivers, secrets, note }),
    async setPaused(id: string, paused: boolean, by: Requester) {
      const changed = await change(id, (one) => ({ ...one, paused }))
      if (changed.ok)
        await note('changed', by, changed.value, [paused ? 'was paused' : 'was resumed', null])
      return changed
    },
    /** `rule` replaces the one with its id; null as an id adds it. */
    saveRule: (id: string, ruleId: string | null, rule: Omit<NotifyRule, 'id'>, by: Requester) =>
      setRules(
        id,
        (rules) =>
          ruleId === null
            ? [...rules, { id: makeRuleId(), ...rule }]
            : rules.map((one) => (one.id === ruleId ? { id: ruleId, ...rule } : one)),
        by,
      ),
    removeRule: (id: string, ruleId: string, by: Requester) =>
      setRules(id, (rules) => rules.filter((one) => one.id !== ruleId), by),
    /** Its messages go with it, and what opens it. */
    async remove(id: string, by: Requester): Promise<Result<Receiver, EditRefusal>> {
      const removed = await receivers.remove(id)
      if (removed === null) return refuse('unknown')
      await secrets.remove(id)
      await note('removed', by, removed, ['was removed', null])
      return accept(removed)
    },
  }
}

type Note = ReturnType<typeof createNote>

const createNote =
  (record: EditsDependencies['record']) =>
  (
    kind: 'added' | 'changed' | 'removed',
    { actor, ip }: Requester,
    { name }: Pick<Receiver, 'name'>,
    [done, details]: readonly [string, JournalEntry['details']],
  ) =>
    record({
      kind: `notification.receiver.${kind}`,
      subject_kind: 'settings',
      subject_id: name,
      actor,
      source_ip: ip,
      summary: `The receiver of notifications ${name} ${done}`,
      details,
    })

const createEdit =
  ({
    receivers,
    secrets,
    note,
  }: Pick<EditsDependencies, 'receivers' | 'secrets'> & { readonly note: Note }) =>
  async (
    id: string,
    given: GivenReceiver,
    by: Requester,
  ): Promise<Result<Receiver, EditRefusal>> => {
    const before = receivers.find(id)
    if (before === null) return refuse('unknown')
    // What opens one address is not sent to another one that was entered later.
    const isElsewhere = placeOf(before.target) !== placeOf(given.target)
    const why = checkSecret(given, secrets.find(id) !== null && !isElsewhere)
    if (why !== null) return refuse(why)
    const { name, target, secret } = given
    const changed = await receivers.update(id, (one) => ({ ...one, name, target }))
    if (!changed.ok) return changed
    if (secret !== '') await secrets.save(id, secret)
    else if (isElsewhere) await secrets.remove(id)
    const changes = {
      name: { before: before.name, after: name },
      address: { before: nameTarget(before.target), after: nameTarget(target) },
      ...(secret === '' ? {} : { secret: { before: 'another one', after: 'a new one' } }),
    }
    await note('changed', by, changed.value, ['was changed', { changes }])
    return changed
  }

const makeRuleId = (): string => randomBytes(4).toString('hex')

function checkSecret({ target, secret }: GivenReceiver, isKept: boolean): EditRefusal | null {
  const shape = SECRET_SHAPES[target.kind]
  if (secret === '') return isKept || shape === null ? null : 'secret-missing'
  return shape?.test(secret) === false ? 'secret-shape' : null
}

/** Whom a secret is shown to: nobody else gets it. A signature shows none. */
const placeOf = (target: ReceiverTarget): string =>
  target.kind === 'mail'
    ? `${target.host}:${target.port} ${target.security} ${target.user}`
    : target.kind
