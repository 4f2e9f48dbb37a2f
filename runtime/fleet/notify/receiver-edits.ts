/** Adds, changes and removes receivers by one rule for every way to do so; each change is on record. */
import { randomBytes } from 'node:crypto'
import { accept, refuse, type Result } from '../../kit/foundation/result.ts'
import type { JournalEntry, Requester } from '../state/journal.ts'
import type { Receivers, ReceiverRefusal } from './receivers.ts'
import type { ReceiverSecrets } from './receiver-secrets.ts'
import {
  describeRule,
  MAX_RULES,
  nameTarget,
  SECRET_SHAPES,
  type Receiver,
  type ReceiverRecord,
  type NotifyRule,
  type ReceiverTarget,
} from './rules/receiver.ts'
import type { Sender } from './sender.ts'

export type EditRefusal = ReceiverRefusal | 'secret-missing' | 'secret-shape' | 'too-many-rules'

interface EditsDependencies {
  readonly receivers: Receivers
  readonly secrets: ReceiverSecrets
  readonly sender: Pick<Sender, 'catchUp'>
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

/** Creates it. Events name the receiver and where it is, and never what opens it. */
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
    await note('changed', by, changed.value, ['got other rules', { changes }])
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
        await note('changed', by, changed.value, [paused ? 'was paused' : 'goes on', null])
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
