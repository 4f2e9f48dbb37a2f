/** Keys that the server makes for itself and keeps in its state directory, readable by it alone. */

export interface Secret {
  /** HMAC-SHA256 of a text, base64url. */
  sign(text: string): string
  /** Compares in constant time. */
  verify(text: string, signature: string): boolean
}
