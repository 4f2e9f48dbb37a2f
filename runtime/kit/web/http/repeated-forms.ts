/** Whoever clicks twice sends a form twice: it is carried out once, and both requests get its answer. */
import { createHash } from 'node:crypto'
import type { H3Event } from 'h3'
import { addCookie, type Answer } from '../answers/answers.ts'
import type { MaybePromise } from '#kit/foundation/maybe-promise.ts'
import { callerOf } from '../answers/caller.ts'

/** How long after its answer the same form is another click on the same button, in milliseconds. */
const MAX_APART_MS = 1000

interface Answered {
  readonly answer: Answer
  /** They are gone from the event once it is answered. */
  readonly cookies: readonly string[]
}

interface NewestForm {
  readonly key: string
  readonly answered: Promise<Answered>
}

export type RepeatedForms = ReturnType<typeof createRepeatedForms>

/**
 * What a form says is its name, as a page that was loaded without scripts sends nothing else. It is
 * forgotten soon after its answer, and as soon as its session sends something else: it means
 * something new then.
 */
export function createRepeatedForms() {
  const newest = new Map<string, NewestForm>()

  return {
    async handle(
      event: H3Event,
      form: URLSearchParams | null,
      carryOut: () => MaybePromise<Answer>,
    ): Promise<Answer> {
      const caller = callerOf(event)
      if (caller.kind !== 'session') return await carryOut()
      const key = keyOf(event, form)
      const known = newest.get(caller.id)
      if (known?.key === key) {
        const { answer, cookies } = await known.answered
        for (const cookie of cookies) addCookie(event, cookie)
        return answer
      }
      const made = { key, answered: answerOnce(event, carryOut) }
      newest.set(caller.id, made)
      const forget = () => {
        if (newest.get(caller.id) === made) newest.delete(caller.id)
      }
      try {
        return (await made.answered).answer
      } finally {
        setTimeout(forget, MAX_APART_MS).unref()
      }
    },
    /** Its session changes something in another way. */
    forget(event: H3Event): void {
      const caller = callerOf(event)
      if (caller.kind === 'session') newest.delete(caller.id)
    },
  }
}

async function answerOnce(event: H3Event, carryOut: () => MaybePromise<Answer>): Promise<Answered> {
  const answer = await carryOut()
  return { answer, cookies: event.res.headers.getSetCookie() }
}

/** Scripts are answered in other words than browsers. */
function keyOf({ url, req }: H3Event, form: URLSearchParams | null): string {
  const hash = createHash('sha256').update(`${url.pathname}${url.search}\n`)
  hash.update(req.headers.get('accept') ?? '')
  for (const field of form ?? []) hash.update(JSON.stringify(field))
  return hash.digest('hex')
}
