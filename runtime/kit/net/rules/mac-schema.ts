/** A MAC address in what others send or what is stored, in either spelling. */
import { z } from 'zod'
import { parseMac } from './mac.ts'

export const MacSchema = z.string().transform((text, context) => {
  const mac = parseMac(text)
  if (mac.ok) return mac.value
  context.addIssue({ code: 'custom', message: 'not a MAC address' })
  return z.NEVER
})
