/** A request of the API as a command to paste into a shell; the token stays in a variable. */
import { printableJson } from '../../../kit/foundation/printable.ts'

export interface CurlRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly url: string
  /** What is sent as JSON; absent: nothing. */
  readonly body?: Readonly<Record<string, unknown>>
}

/**
 * Renders the command for a POSIX shell. Whatever names and labels hold, it stays text: each argument is in
 * single quotes, but for the header whose variable the shell fills in.
 */
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
