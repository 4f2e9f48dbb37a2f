/** The script in our iPXE, with the address of a fixed server if there is one. */

/** An address that is safe in an iPXE script: no blanks, no `${`, no operators. */
const ADDRESS = /^https?:\/\/[\w.[\]:-]+(\/[\w./-]*)?$/

/**
 * Parses the base address of a machine server; it has no trailing slash. Null when it is not safe
 * in a script.
 */
export function parseServerBase(text: string): string | null {
  const base = text.replace(/\/+$/, '')
  return ADDRESS.test(base) ? base : null
}

/**
 * Renders the script without comments, and with the address of `server`, which is null when none is
 * fixed. `script` begins with `#!ipxe` and evaluates `${server}` itself. Throws when it does not,
 * or when the address is not safe.
 */
export function renderCarried(script: string, server: string | null): string {
  const [first = '', ...rest] = script.split('\n').filter((line) => !/^(#(?!!)|\s*$)/.test(line))
  if (first !== '#!ipxe') throw new Error('the script does not begin with #!ipxe')
  if (server === null) return [first, ...rest, ''].join('\n')
  const base = parseServerBase(server)
  if (base === null) {
    throw new Error(`--ipxe-server must be an address like http://flasher:8080, not ${server}`)
  }
  return [first, `set server ${base}`, ...rest, ''].join('\n')
}
