/** Follows the events for each receiver, and makes one message of those that belong together. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { epochOf } from '../../kit/foundation/instants.ts'
import type { Database } from '../state/database.ts'
import { listEventsAfter } from '../state/event-rows.ts'
import { readNumber, type Sql } from '../state/sqlite.ts'
import type { Message, Messages } from './messages.ts'
import type { Receivers } from './receivers.ts'
import { isWanted, type MatchesSearch } from './rules/matching.ts'
import {
  collect,
  composeMessage,
  NOTHING_COLLECTED,
  type Collected,
  type FindNamed,
} from './rules/message.ts'
import type { Receiver } from './rules/receiver.ts'

export interface ReadingDependencies {
  readonly database: Database
  readonly receivers: Receivers
  readonly messages: Messages
  readonly matches: MatchesSearch
  readonly findNamed: FindNamed
  /** The address of the pages without a slash at its end; null: nobody has said it. */
  base(): string | null
  now(): Date
}

/** What was read for one receiver since its stored place; a restart reads it again. */
interface FollowedEvents {
  /** The rules by which it was read, and the state of the database. */
  readonly of: string
  readonly place: number
  readonly collected: Collected
  /** How many events were read since the place was stored. */
  readonly read: number
}

/** So many events are read at once, while others are answered in between. */
const STEP = 200
/** The place is stored after so many events that are for nobody: a start reads no more than these. */
const MAX_UNSTORED = 2000
/** What follows an event within this time is in the same message. */
const COLLECTED_MS = 30_000

/** Creates it. What was read and is not in a message yet is in memory alone, and in the journal. */
export function createFollower(given: ReadingDependencies) {
  const { database, receivers, now } = given
  const progress = new Map<string, FollowedEvents>()

  function resume(receiver: Receiver): FollowedEvents {
    const of = JSON.stringify([database.epoch(), receiver.rules])
    const known = progress.get(receiver.id)
    if (known?.of === of) return known
    const place = receivers.placeOf(receiver.id) ?? 0
    return { of, place, collected: NOTHING_COLLECTED, read: 0 }
  }

  function read(
    receiver: Receiver,
    before: FollowedEvents,
  ): { after: FollowedEvents; isMore: boolean } {
    const found = listEventsAfter(database.sql, before.place, STEP)
    let { collected, place } = before
    for (const event of found) {
      place = event.id
      if (isWanted(receiver, event, given.matches)) collected = collect(collected, event)
    }
    const after = { ...before, collected, place, read: before.read + found.length }
    return { after, isMore: found.length === STEP }
  }

  const { skip, store } = createSteps(given, (id) => void progress.delete(id))

  async function compose(receiver: Receiver): Promise<Message | null> {
    const { collected, place, read: count } = resume(receiver)
    const [first] = collected.events
    if (first === undefined) return count >= MAX_UNSTORED ? await skip(receiver, place) : null
    // An event far ahead is one that a clock set back has left behind.
    const isDue = Math.abs(now().getTime() - epochOf(first.ts)) >= COLLECTED_MS
    return isDue ? await store(receiver, collected, place) : null
  }

  return {
    /** Reads what has happened since, and offers to make a message of what is due. */
    async follow(receiver: Receiver) {
      let present = resume(receiver)
      if (newest(database.sql) < present.place) {
        // A restore has taken events away; the stored place knows of it.
        progress.delete(receiver.id)
        present = resume(receiver)
      }
      for (let isMore = true; isMore;) {
        const step = read(receiver, present)
        present = step.after
        isMore = step.isMore
        progress.set(receiver.id, present)
        if (isMore) await nextTurn()
      }
      const { collected, place } = present
      const isNothing = collected.events.length === 0
      return {
        /** Resolves to the message; null: nothing is due yet. */
        compose: () => compose(receiver),
        /** Does so whether it is due or not, and stores the place in any case. */
        finish: () => (isNothing ? skip(receiver, place) : store(receiver, collected, place)),
      }
    },
    /** Forgets receivers that are not there any more. */
    keepOnly(present: readonly Receiver[]): void {
      if (progress.size === 0) return
      const ids = new Set(present.map(({ id }) => id))
      for (const id of progress.keys()) if (!ids.has(id)) progress.delete(id)
    },
  }
}

/** What moves the place of a receiver; `forget` is called with it when that is stored. */
function createSteps(
  { database, receivers, messages, findNamed, base, now }: ReadingDependencies,
  forget: (id: string) => void,
) {
  return {
    async skip({ id }: Receiver, place: number): Promise<null> {
      await database.write((sql) => receivers.moveTo(sql, id, place))
      forget(id)
      return null
    },
    /** The message and the place behind its events are stored together: no event is in two messages. */
    async store(
      { id, name }: Receiver,
      collected: Collected,
      place: number,
    ): Promise<Message | null> {
      const content = composeMessage(collected, findNamed)
      const time = now().toISOString()
      const message = await database.write((sql) => {
        if (!receivers.moveTo(sql, id, place)) return null
        return messages.insert(sql, {
          receiver: id,
          state: 'waiting',
          made_at: time,
          queued_at: time,
          attempts: 0,
          tried_at: null,
          next_at: time,
          failure: null,
          content,
          receiver_name: name,
          base: base(),
        })
      })
      forget(id)
      return message
    },
  }
}

const newest = (sql: Sql): number =>
  readNumber(sql.get('SELECT coalesce(max(id), 0) AS id FROM events'), 'id')
