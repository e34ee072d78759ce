import { createHmac } from 'node:crypto';

const STEP_MS = 30_000;
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** An authenticator app (TOTP, RFC 6238). */
export class Authenticator {
  readonly secret: string;
  private readonly key: Buffer;
  private lastStep = 0;

  /** `secret` is in base32, with or without spaces. */
  constructor(secret: string) {
    this.secret = secret.replaceAll(/\s/g, '');
    const bits = [...this.secret]
      .map((letter) => LETTERS.indexOf(letter).toString(2).padStart(5, '0'))
      .join('');
    this.key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => parseInt(byte, 2)));
  }

  /** Returns a code that the server accepts. Codes work once, so each call returns a new one. */
  async code(): Promise<string> {
    // The server also accepts the code of the next half minute, so few callers have to wait.
    const next = this.lastStep + 1;
    while (next > this.now() + 1) await new Promise((later) => setTimeout(later, 500));
    this.lastStep = Math.max(next, this.now());
    return this.at(this.lastStep);
  }

  private now(): number {
    return Math.floor(Date.now() / STEP_MS);
  }

  private at(step: number): string {
    const counter = Buffer.alloc(8);
    counter.writeBigUInt64BE(BigInt(step));
    const hash = createHmac('sha1', this.key).update(counter).digest();
    const offset = hash[hash.length - 1]! & 0xf;
    const number = hash.readUInt32BE(offset) & 0x7fff_ffff;
    return String(number % 1_000_000).padStart(6, '0');
  }
}
