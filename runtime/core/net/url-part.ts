/** Decodes a part of a URL. */

/** Null: no spelling of anything. */
export function decodePart(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}
