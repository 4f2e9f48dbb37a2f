/** A request of the API as a command to paste into a shell; the token stays in a variable. */
import { printableJson } from '#kit/foundation/printable.ts'

export interface CurlRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly url: string
  /** Sent as JSON; absent: nothing. */
  readonly body?: Readonly<Record<string, unknown>>
}

/** Single quotes make any name safe; only the header with the shell's variable has others. */
export function renderCurl({ method, url, body }: CurlRequest): string {
  const lines = [
    `curl -fsS ${method === 'GET' ? '' : `-X ${method} `}${quote(url)}`,
    '-H "Authorization: Bearer $FLASHER_TOKEN"',
    ...(body === undefined
      ? []
      : [
          `-H 'Content-Type: application/json'`,
          `-d ${quote(printableJson(JSON.stringify(body, null, 2)))}`,
        ]),
  ]
  return lines.join(' \\\n  ')
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
