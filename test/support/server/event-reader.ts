/** Reads server-sent events of one answer. */

export interface SentEvent {
  readonly name: string
  readonly data: string
}

export interface EventReader {
  /** Returns the next event; null when the stream has ended. Comments are counted, not answered. */
  next(): Promise<SentEvent | null>
  /** The first event from now on for which `isIt` holds; null when the stream ends before. */
  until(isIt: (event: SentEvent) => boolean): Promise<SentEvent | null>
  comments(): number
  close(): Promise<void>
}

export function readEvents(answer: Response): EventReader {
  const reader = (answer.body ?? new ReadableStream<Uint8Array>()).getReader()
  const decoder = new TextDecoder()
  let text = ''
  let comments = 0

  async function next(): Promise<SentEvent | null> {
    for (;;) {
      const end = text.indexOf('\n\n')
      if (end >= 0) {
        const block = text.slice(0, end)
        text = text.slice(end + 2)
        const event = parse(block)
        if (event !== null) return event
        comments += 1
        continue
      }
      const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }))
      if (done || value === undefined) return null
      text += decoder.decode(value, { stream: true })
    }
  }

  return {
    next,
    async until(isIt) {
      for (;;) {
        const event = await next()
        if (event === null || isIt(event)) return event
      }
    },
    comments: () => comments,
    close: () => reader.cancel().catch(() => undefined),
  }
}

function parse(block: string): SentEvent | null {
  const lines = block.split('\n').filter((line) => !line.startsWith(':'))
  const name = lines.find((line) => line.startsWith('event: '))?.slice('event: '.length)
  if (name === undefined) return null
  const data = lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice(6))
  return { name, data: data.join('\n') }
}
