/** The script that our iPXE carries, with a server's address in it where one was asked for. */

/** What can stand in a script of iPXE: no blanks, no `${`, nothing that it takes for an operator. */
const ADDRESS = /^https?:\/\/[\w.[\]:-]+(\/[\w./-]*)?$/

/** The base address of a machine server, without a slash at its end; null: a script cannot hold it. */
export function parseServerBase(text: string): string | null {
  const base = text.replace(/\/+$/, '')
  return ADDRESS.test(base) ? base : null
}

/** `script` begins with `#!ipxe` and looks for `${server}` itself; `server` is null where none is fixed. */
export function renderCarried(script: string, server: string | null): string {
  const [first = '', ...rest] = script.split('\n').filter((line) => !/^(#(?!!)|\s*$)/.test(line))
  if (first !== '#!ipxe') throw new Error('the script does not begin with #!ipxe')
  if (server === null) return [first, ...rest, ''].join('\n')
  const base = parseServerBase(server)
  if (base === null) {
    throw new Error(`--ipxe-server takes an address like http://flasher:8080, not ${server}`)
  }
  return [first, `set server ${base}`, ...rest, ''].join('\n')
}
