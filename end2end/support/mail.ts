import { type ChildProcess, spawn } from 'node:child_process';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from '@playwright/test';
import { Server } from './server.js';
import { test as base } from './test.js';

const workspace = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
/** The mail server of the Rust tests, built on the npm package `smtp-server`. */
const program = join(workspace, 'server/tests/peers/node/smtp.js');

export interface Mail {
  subject: string;
  /** Text and HTML, decoded. */
  body: string;
  /** The URLs in the mail, without duplicates. */
  links: string[];
}

/** A real mail server in its own process, and the mails that it received. */
export class MailServer {
  private readonly mails: { recipient: string; mail: Mail }[] = [];

  private constructor(
    private readonly process: ChildProcess,
    readonly url: string,
  ) {}

  static start(): Promise<MailServer> {
    const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
    return new Promise((listening, failed) => {
      let server: MailServer | undefined;
      child.once('error', failed);
      child.once('exit', (code) => failed(new Error(`The mail server ended with ${code}.`)));
      createInterface({ input: child.stdout }).on('line', (line) => {
        const event = JSON.parse(line);
        if (event.event === 'listening') {
          server = new MailServer(child, `smtp://127.0.0.1:${event.port}`);
          listening(server);
        } else if (event.event === 'mail') {
          const mail = read(event.source);
          for (const recipient of event.recipients) server?.mails.push({ recipient, mail });
        }
      });
    });
  }

  /** Closes the input of the process, which ends it. */
  stop(): void {
    this.process.stdin?.end();
  }

  /** Returns all mails to an address, in the order of their arrival. */
  to(recipient: string): Mail[] {
    return this.mails.filter((sent) => sent.recipient === recipient).map(({ mail }) => mail);
  }

  /** Waits for the only mail to an address with a subject and some words, and returns it. */
  async mail(recipient: string, subject: string, words = ''): Promise<Mail> {
    const found = () =>
      this.to(recipient).filter((mail) => mail.subject === subject && mail.body.includes(words));
    await expect.poll(() => found().length, { message: `mails "${subject}"` }).toBe(1);
    return found()[0]!;
  }
}

/** Reads a mail whose parts are quoted-printable or plain. */
function read(source: string): Mail {
  const subject = /^Subject: (.*)$/m.exec(source)?.[1]?.trim() ?? '';
  const bytes = source
    .replaceAll('=\r\n', '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
  const body = Buffer.from(bytes, 'latin1').toString();
  return { subject, body, links: [...new Set(body.match(/https?:\/\/[^\s"<>]+/g) ?? [])] };
}

/** The `test` function for a server that sends mails. */
export const test = base.extend<object, { mails: MailServer }>({
  mails: [
    async ({}, use) => {
      const mails = await MailServer.start();
      await use(mails);
      mails.stop();
    },
    { scope: 'worker' },
  ],

  server: [
    async ({ mails }, use) => {
      const server = await Server.start({
        HELIOGRAPH_SMTP_URL: mails.url,
        HELIOGRAPH_MAIL_FROM: 'Heliograph <sms@example.org>',
      });
      await use(server);
      await server.stop();
    },
    { scope: 'worker', timeout: 60_000 },
  ],
});

export { expect };
