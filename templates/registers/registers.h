/* Registers of project `{{ project | comment }}`. Byte addresses; every register has 32 bits. */
#ifndef {{ project | c_name | upper }}_REGISTERS_H
#define {{ project | c_name | upper }}_REGISTERS_H
{% for block in blocks %}
{%- set prefix = block.instance | c_name | upper %}
/* {{ block.instance | comment }} */
#define {{ prefix }}_BASE {{ block.base | hex4 }}u
#define {{ prefix }}_SIZE {{ block.size }}u
{%- for register in block.registers %}
{%- set name = register.name | upper %}
/* {{ register.access }} {{ register.kind }}{% if register.doc %}: {{ register.doc | comment }}{% endif %} */
#define {{ prefix }}_{{ name }} {{ register.address | hex4 }}u
{%- for field in register.fields %}
{%- if field.doc %}
/* {{ field.doc | comment }} */
{%- endif %}
#define {{ prefix }}_{{ name }}_{{ field.name | upper }}_SHIFT {{ field.lsb }}u
#define {{ prefix }}_{{ name }}_{{ field.name | upper }}_MASK {{ field | mask }}u
{%- endfor %}
{%- endfor %}
{% endfor %}
#endif
